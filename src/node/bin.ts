#!/usr/bin/env node
// The command of the package: `mesh-monitoring-service` starts the service, `mesh-monitoring-service cli …` administers it.
const [, , name = '', ...rest] = process.argv

if (name === '') {
  await import('./main.ts')
} else if (name === 'cli') {
  process.argv.splice(2, process.argv.length, ...rest)
  await import('./cli.ts')
} else {
  console.error(
    'mesh-monitoring-service           starts the service, configured by environment variables\n' +
      'mesh-monitoring-service cli …     administers its database; without a command it lists them',
  )
  process.exitCode = name === 'help' || name === '--help' ? 0 : 2
}
