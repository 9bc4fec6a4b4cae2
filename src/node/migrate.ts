import { join } from 'node:path'
import { openDatabase } from './database.ts'
import { prepareDataDir, refuseNetwork, StartRefused } from './start/problems.ts'

// drizzle-kit does not report a database of a newer version.
process.umask(0o077)
const directory = process.env['DATA_DIR'] || './data'
const mayBeNetwork = process.env['ALLOW_NETWORK_FILE_SYSTEM'] === 'true'
try {
  refuseNetwork({ DATA_DIR: directory, ALLOW_NETWORK_FILE_SYSTEM: mayBeNetwork }, { warn: console.warn })
  prepareDataDir(directory)
  openDatabase(join(directory, 'mesh.db')).close()
} catch (error) {
  if (!(error instanceof StartRefused)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
