import { requireNode } from './start/needed-node.ts'

requireNode('Start it with "npm start", which brings its own Node.')
const { run } = await import('./service.ts')
await run(process.env)
