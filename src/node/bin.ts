#!/usr/bin/env node
// The command of the package: `mesh-monitoring-service` starts the service, `mesh-monitoring-service cli …` administers it.
import { fileURLToPath } from 'node:url'
import { ensureNode } from './start/needed-node.ts'

const [, , name = '', ...rest] = process.argv

if (name === '') {
  await import('./main.ts')
} else if (name === 'cli') {
  await ensureNode()
  // As if the console had been started: some commands start themselves again.
  const cli = fileURLToPath(import.meta.url).replace(/\bbin(\.[jt]s)$/, 'cli$1')
  process.argv.splice(1, process.argv.length, cli, ...rest)
  await import('./cli.ts')
} else {
  console.error(
    'mesh-monitoring-service           starts the service, configured by environment variables\n' +
      'mesh-monitoring-service cli …     administers its database; without a command it lists them',
  )
  process.exitCode = name === 'help' || name === '--help' ? 0 : 2
}
