import type { Verification } from '../../app/system/backup/backup.ts'
import { Worker } from 'node:worker_threads'
import type { Encrypted, EncryptionJob } from './copies/encrypt.ts'
import type { Against } from './inspect.ts'
import type { Manifest } from '../../app/system/backup/format/manifest.ts'
import type { SnapshotJob, SnapshotProgress } from './snapshot.ts'

export type Job =
  | { readonly kind: 'snapshot'; readonly job: SnapshotJob }
  | { readonly kind: 'inspection'; readonly directory: string; readonly against: Against }
  | { readonly kind: 'encryption'; readonly job: EncryptionJob }

export type JobMessage =
  | { readonly kind: 'progress'; readonly at: SnapshotProgress }
  | { readonly kind: 'snapshot'; readonly manifest: Manifest }
  | { readonly kind: 'inspection'; readonly inspection: Verification }
  | { readonly kind: 'encryption'; readonly encrypted: Encrypted }
  | { readonly kind: 'failed'; readonly message: string; readonly stack: string; readonly isDiskFull: boolean }

/** A job failed in its thread, with the message of its cause. */
export class JobFailed extends Error {
  override name = 'JobFailed'
  readonly isDiskFull: boolean

  constructor(message: string, isDiskFull: boolean, cause?: unknown) {
    super(message, { cause })
    this.isDiskFull = isDiskFull
  }
}

// The build flattens this folder's modules into chunks beside main.js; threads keep their own folder there.
export function threadFile(name: 'worker' | 'archive-worker' | 'encryption-worker'): URL {
  return new URL(import.meta.url.endsWith('.ts') ? `./${name}.ts` : `./backup/${name}.js`, import.meta.url)
}

/** A stream of small pieces needs little memory, and without limits a thread takes more. */
const SMALL = { resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 96 } }

/** Runs a job in its own thread. Throws JobFailed; an abort ends the thread at once. */
export async function runJob(
  job: Job,
  signal: AbortSignal,
  onProgress: (at: SnapshotProgress) => void,
): Promise<Exclude<JobMessage, { kind: 'progress' | 'failed' }>> {
  if (signal.aborted) throw new JobFailed('the service stops', false)
  const isEncryption = job.kind === 'encryption'
  const file = threadFile(isEncryption ? 'encryption-worker' : 'worker')
  const worker = new Worker(file, { workerData: job, ...(isEncryption && SMALL) })
  const stop = () => {
    void worker.terminate()
  }
  signal.addEventListener('abort', stop)
  try {
    return await new Promise((resolve, reject) => {
      worker.on('message', (message: JobMessage) => {
        if (message.kind === 'progress') onProgress(message.at)
        else if (message.kind === 'failed') reject(new JobFailed(message.message, message.isDiskFull, message.stack))
        else resolve(message)
      })
      worker.once('error', reject)
      worker.once('exit', (code) => reject(new JobFailed(`the backup thread ended with ${code}`, false)))
    })
  } finally {
    signal.removeEventListener('abort', stop)
    await worker.terminate()
  }
}
