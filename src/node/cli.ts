import { requireNode } from './start/needed-node.ts'

requireNode('Use "npm run cli", which brings its own Node.')
const { runConsole } = await import('./console/console.ts')
process.exitCode = await runConsole(process.argv.slice(2), process.env)
