import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { LogState } from './copy-log.ts'

export type CheckpointRequest = 'copy' | 'begin-anew' | 'close'
/** `isNew`: the log was begun anew. */
type Checked = LogState & { readonly isNew: boolean }
export type CheckpointAnswer = Checked | { readonly failed: string; readonly code: string }

/** The thread takes 14 MB, so it is not kept between two checkpoints. */
const IDLE_MS = 1000
const SMALL = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 32 }

/** What copies the log into the database: a thread with a connection of its own. One request at a time. */
export type Checkpoints = {
  /** See `copyLog` and `beginAnew`. Throws the error of SQLite. */
  run(request: 'copy' | 'begin-anew'): Promise<Checked>
  close(): Promise<void>
}

// The build flattens this folder's modules into chunks beside main.js; threads keep their own folder there.
const file = () => new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './flushing/worker.js', import.meta.url)

export function openCheckpoints(database: string): Checkpoints {
  let worker: Worker | null = null
  let idle: NodeJS.Timeout | undefined

  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  const send = (to: Worker, request: CheckpointRequest) => to.postMessage(request)
  const start = (): Worker => {
    const started = new Worker(file(), { workerData: database, resourceLimits: SMALL })
    // Told to whoever asks.
    started.on('error', () => {})
    started.once('exit', () => {
      if (worker === started) worker = null
    })
    return started
  }
  const close = async () => {
    clearTimeout(idle)
    const closing = worker
    worker = null
    if (closing === null) return
    const ended = once(closing, 'exit')
    // Not terminated: its connection must be closed.
    send(closing, 'close')
    await ended
  }
  return {
    async run(request) {
      clearTimeout(idle)
      const asked = (worker ??= start())
      const answer = await new Promise<CheckpointAnswer>((resolve, reject) => {
        const end = () => reject(new Error('the thread of checkpoints ended'))
        asked.once('exit', end)
        asked.once('error', reject)
        asked.once('message', (told: CheckpointAnswer) => {
          asked.off('exit', end)
          asked.off('error', reject)
          resolve(told)
        })
        send(asked, request)
      })
      idle = setTimeout(() => void close().catch(() => {}), IDLE_MS).unref()
      if (!('failed' in answer)) return answer
      throw Object.assign(new Error(answer.failed), { code: answer.code })
    },
    close,
  }
}
