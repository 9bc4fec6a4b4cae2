// Encrypts the archive of a backup, away from the event loop, and with nothing in memory that only other jobs need.
import { parentPort, workerData } from 'node:worker_threads'
import { encryptBackup, type EncryptionJob } from './copies/encrypt.ts'
import { diskFiles } from './folder/files.ts'
import { jobFailure } from './job-failure.ts'
import type { JobMessage } from './jobs.ts'

// workerData comes from runJob in jobs.ts: one of this program's own jobs.
function givenJob(): EncryptionJob {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (workerData as { readonly job: EncryptionJob }).job
}

function post(message: JobMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(message)
}

try {
  post({ kind: 'encryption', encrypted: await encryptBackup(givenJob(), diskFiles) })
} catch (error) {
  post(jobFailure(error))
}
