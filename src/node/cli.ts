import { ensureNode } from './start/needed-node.ts'
import { keepMemorySmall } from './start/small-memory.ts'

await ensureNode()
if (process.argv[2] === 'import') keepMemorySmall()
const { runConsole } = await import('./console/console.ts')
process.exitCode = await runConsole(process.argv.slice(2), process.env)
