import { ensureNode } from './start/needed-node.ts'

// Node would open its debugger for any process of this user on this machine.
process.on('SIGUSR1', () => {})
await ensureNode()
const { run } = await import('./service.ts')
await run(process.env)
