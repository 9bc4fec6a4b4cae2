import { join } from 'node:path'
import { openDatabase } from '../../../src/node/database.ts'
import { runImport } from './meshmonitor.ts'

// Imports into the database of a directory, and dies in a phase after its first transaction.
const [dataDir = '', file = '', phase = '', signal = 'SIGKILL'] = process.argv.slice(2)
await runImport(openDatabase(join(dataDir, 'mesh.db')), dataDir, {
  file,
  onSlice: (reached) => {
    if (reached === phase) process.kill(process.pid, signal)
  },
})
