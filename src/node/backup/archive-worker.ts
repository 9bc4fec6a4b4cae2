// Makes the archives of all downloads, away from the event loop.
import { parentPort } from 'node:worker_threads'
import type { ArchiveAnswer, ArchiveRequest } from './archiving.ts'
import { archiveBackup } from './folder/archive.ts'

const open = new Map<number, ReadableStreamDefaultReader<Uint8Array>>()

function post(answer: ArchiveAnswer): void {
  parentPort?.postMessage(answer, answer.kind === 'chunk' ? [answer.bytes.buffer] : [])
}

async function answerNext(id: number): Promise<void> {
  try {
    const next = await open.get(id)?.read()
    if (next === undefined) return
    if (next.done) open.delete(id)
    // A copy, because zlib's own buffer also has other bytes.
    post(next.done ? { id, kind: 'end' } : { id, kind: 'chunk', bytes: new Uint8Array(next.value) })
  } catch (error) {
    open.delete(id)
    const stack = error instanceof Error ? (error.stack ?? '') : ''
    post({ id, kind: 'failed', message: error instanceof Error ? error.message : String(error), stack })
  }
}

parentPort?.on('message', (request: ArchiveRequest) => {
  const { id } = request
  if (request.kind === 'open') {
    open.set(id, archiveBackup(request.directory, request.name, request.manifest).getReader())
  } else if (request.kind === 'next') {
    void answerNext(id)
  } else {
    // Closes the files. Nobody needs the answer to a pending read.
    open
      .get(id)
      ?.cancel()
      .catch(() => {})
    open.delete(id)
  }
})
