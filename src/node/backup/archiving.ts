import { Worker } from 'node:worker_threads'
import { JobFailed, threadFile } from './jobs.ts'
import type { Manifest } from '../../app/system/backup/format/manifest.ts'

export type ArchiveRequest = { readonly id: number } & (
  | { readonly kind: 'open'; readonly directory: string; readonly name: string; readonly manifest: Manifest }
  | { readonly kind: 'next' | 'cancel' }
)

export type ArchiveAnswer = { readonly id: number } & (
  | { readonly kind: 'chunk'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly message: string; readonly stack: string }
)

type Waiting = { resolve(bytes: Uint8Array | null): void; reject(error: Error): void }
type Thread = {
  readonly worker: Worker
  /** By archive; null: nobody waits for its next bytes. */
  readonly open: Map<number, Waiting | null>
}

/**
 * Makes archives of backups, all in one thread that ends with the last of them. On the event loop, reading and
 * compressing would hold it for 30 to 50 ms at a time.
 */
export type Archiving = {
  /** A backup as .tar.gz, made while it is read. Throws JobFailed on reading. */
  archive(directory: string, name: string, manifest: Manifest): ReadableStream<Uint8Array>
  /** Ends all archives. */
  close(): Promise<void>
}

export function createArchiving(): Archiving {
  let thread: Thread | null = null
  let last = 0

  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  const send = (worker: Worker, request: ArchiveRequest) => worker.postMessage(request)
  const end = async (ending: Thread, error: Error) => {
    if (thread === ending) thread = null
    for (const waiting of ending.open.values()) waiting?.reject(error)
    ending.open.clear()
    await ending.worker.terminate()
  }
  const start = (): Thread => {
    const worker = new Worker(threadFile('archive-worker'))
    const started: Thread = { worker, open: new Map() }
    worker.on('message', (answer: ArchiveAnswer) => {
      const waiting = started.open.get(answer.id)
      if (waiting === undefined || waiting === null) return
      if (answer.kind === 'chunk') {
        started.open.set(answer.id, null)
        waiting.resolve(answer.bytes)
        return
      }
      leave(started, answer.id)
      if (answer.kind === 'end') waiting.resolve(null)
      else waiting.reject(new JobFailed(answer.message, false, answer.stack))
    })
    worker.once('error', (error) => void end(started, error instanceof Error ? error : new Error(String(error))))
    worker.once('exit', (code) => void end(started, new JobFailed(`the archive thread ended with ${code}`, false)))
    return started
  }
  const leave = (left: Thread, id: number) => {
    left.open.delete(id)
    if (left.open.size === 0) void end(left, new JobFailed('the archive is complete', false))
  }
  return {
    archive(directory, name, manifest) {
      const id = ++last
      let mine: Thread | null = null
      return new ReadableStream<Uint8Array>(
        {
          async pull(sink) {
            if (mine === null) {
              mine = thread ??= start()
              mine.open.set(id, null)
              send(mine.worker, { id, kind: 'open', directory, name, manifest })
            }
            const from = mine
            if (!from.open.has(id)) throw new JobFailed('the archive thread has ended', false)
            const bytes = await new Promise<Uint8Array | null>((resolve, reject) => {
              from.open.set(id, { resolve, reject })
              send(from.worker, { id, kind: 'next' })
            })
            if (bytes === null) sink.close()
            else sink.enqueue(bytes)
          },
          cancel() {
            if (mine === null || !mine.open.has(id)) return
            send(mine.worker, { id, kind: 'cancel' })
            leave(mine, id)
          },
        },
        // Nothing is read ahead of the reader.
        { highWaterMark: 0 },
      )
    },
    async close() {
      if (thread !== null) await end(thread, new JobFailed('the service stops', false))
    },
  }
}
