// Copies the write-ahead log into the database and begins it anew, away from the event loop.
import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { beginAnew, copyLog } from './copy-log.ts'
import type { CheckpointAnswer, CheckpointRequest } from './checkpoints.ts'

const database = new Database(String(workerData), { fileMustExist: true, timeout: 0 })
// Flushes the log before its pages are copied, the database after that, and the head of a log that is begun anew.
database.pragma('synchronous = NORMAL')
database.pragma('wal_autocheckpoint = 0')

function answer(request: 'copy' | 'begin-anew'): CheckpointAnswer {
  try {
    return { isNew: false, ...(request === 'copy' ? copyLog(database) : beginAnew(database)) }
  } catch (error) {
    const { code, message } = Object(error)
    return { failed: String(message), code: String(code) }
  }
}

parentPort?.on('message', (request: CheckpointRequest) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  if (request !== 'close') return parentPort?.postMessage(answer(request))
  database.close()
  parentPort?.close()
})
