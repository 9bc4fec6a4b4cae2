import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { createTarPacker, type TarHeader } from 'modern-tar'
import { type Manifest, MANIFEST } from './manifest.ts'
import { CHUNK_BYTES, openRegular } from './safe-read.ts'

/**
 * A backup as .tar.gz with one top folder, made while it is read. Nothing is opened before the first read. When the
 * reader goes away, every file is closed.
 */
export function archiveBackup(directory: string, name: string, manifest: Manifest): ReadableStream<Uint8Array> {
  const mtime = new Date(manifest.createdAt)
  const files = [MANIFEST, ...manifest.tables.map(({ file }) => file)]
  const stop = new AbortController()
  let compressed: ReadableStreamDefaultReader<Uint8Array> | null = null
  const begin = () => {
    const { readable, controller } = createTarPacker()
    const gzip = createGzip({ level: 1, chunkSize: 64 * 1024 })
    const feed = async () => {
      await writeEntry(controller.add({ name: `${name}/`, type: 'directory', size: 0, mode: 0o700, mtime }), null, stop)
      for (const file of files) {
        const { fd, size } = openRegular(join(directory, file), file)
        const header: TarHeader = { name: `${name}/${file}`, type: 'file', size, mode: 0o600, mtime }
        await writeEntry(controller.add(header), fd, stop)
      }
      controller.finalize()
    }
    feed().catch((error: unknown) => controller.error(error))
    pipeline(Readable.fromWeb(readable), gzip, { signal: stop.signal }).catch((error: unknown) =>
      gzip.destroy(error instanceof Error ? error : new Error(String(error))),
    )
    return Readable.toWeb(gzip).getReader()
  }
  return new ReadableStream<Uint8Array>(
    {
      pull: async (sink) => {
        compressed ??= begin()
        const { done, value } = await compressed.read()
        if (done) sink.close()
        else sink.enqueue(value)
      },
      cancel: async (reason) => {
        stop.abort(reason)
        await compressed?.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Writes the body of an entry: the content of the file `fd`, which is always closed, or nothing. */
async function writeEntry(sink: WritableStream<Uint8Array>, fd: number | null, stop: AbortController): Promise<void> {
  const writer = sink.getWriter()
  if (fd !== null) {
    const file = createReadStream('', { fd, highWaterMark: CHUNK_BYTES, signal: stop.signal })
    for await (const chunk of file) await writer.write(chunk)
  }
  await writer.close()
}
