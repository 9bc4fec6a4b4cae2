#!/usr/bin/env node
// The command of the package: `mesh-monitoring-service` starts the service, `mesh-monitoring-service cli …` administers it.
import { ensureNode } from './start/needed-node.ts'

const [, , name = '', ...rest] = process.argv

if (name === '') {
  await import('./main.ts')
} else if (name === 'cli') {
  await ensureNode()
  process.argv.splice(2, process.argv.length, ...rest)
  await import('./cli.ts')
} else {
  console.error(
    'mesh-monitoring-service           starts the service, configured by environment variables\n' +
      'mesh-monitoring-service cli …     administers its database; without a command it lists them',
  )
  process.exitCode = name === 'help' || name === '--help' ? 0 : 2
}
