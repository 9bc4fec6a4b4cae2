import { ensureNode } from './start/needed-node.ts'

await ensureNode()
const { runConsole } = await import('./console/console.ts')
process.exitCode = await runConsole(process.argv.slice(2), process.env)
