import { join } from 'node:path'
import { openDatabase } from './database.ts'
import { StartRefused } from './start-problems.ts'

// Not by drizzle-kit, which says nothing to a database of a newer version.
try {
  openDatabase(join(process.env['DATA_DIR'] ?? './data', 'mesh.db')).close()
} catch (error) {
  if (!(error instanceof StartRefused)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
