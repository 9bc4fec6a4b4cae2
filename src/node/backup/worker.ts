// Reads or writes whole backups, away from the event loop.
import { parentPort, workerData } from 'node:worker_threads'
import { diskFiles } from './folder/files.ts'
import { inspectBackup } from './inspect.ts'
import { jobFailure } from './job-failure.ts'
import type { Job, JobMessage } from './jobs.ts'
import { writeSnapshot } from './snapshot.ts'
import { systemClock } from '../clock.ts'

const PROGRESS_INTERVAL_MS = 100

// workerData comes from runJob in jobs.ts: one of this program's own jobs.
function givenJob(): Exclude<Job, { kind: 'encryption' }> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return workerData as Exclude<Job, { kind: 'encryption' }>
}

function post(message: JobMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(message)
}

let reported = 0
function nowAndThen(report: () => void): void {
  const now = systemClock.monotonic()
  if (now - reported < PROGRESS_INTERVAL_MS) return
  reported = now
  report()
}

try {
  const job = givenJob()
  if (job.kind === 'snapshot') {
    const manifest = writeSnapshot(job.job, diskFiles, (at) => nowAndThen(() => post({ kind: 'progress', at })))
    post({ kind: 'snapshot', manifest })
  } else {
    post({ kind: 'inspection', inspection: inspectBackup(job.directory, job.against, () => {}) })
  }
} catch (error) {
  post(jobFailure(error))
}
