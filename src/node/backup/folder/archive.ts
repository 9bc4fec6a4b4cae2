import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createGzip, type Gzip } from 'node:zlib'
import { createTarPacker, type TarHeader } from 'modern-tar'
import { letGo } from './let-go.ts'
import type { Manifest } from '../../../app/system/backup/format/manifest.ts'
import { MANIFEST } from '../../../app/system/backup/format/names.ts'
import { CHUNK_BYTES, openRegular } from './safe-read.ts'

/**
 * Of objects, so that reading joins no pieces, which would copy them. In buffers that are never as large as Node's pool,
 * so that they can be let go.
 */
const SETTINGS = { level: 1, chunkSize: CHUNK_BYTES / 2, readableObjectMode: true, readableHighWaterMark: 1 }

/**
 * A backup as .tar.gz with one top folder, made while it is read. Nothing is opened before the first read. When the
 * reader goes away, every file is closed.
 */
export function archiveBackup(directory: string, name: string, manifest: Manifest): ReadableStream<Uint8Array> {
  const mtime = new Date(manifest.createdAt)
  const files = [MANIFEST, ...manifest.tables.map(({ file }) => file)]
  const stop = new AbortController()
  const passed: Passed = new Map()
  let compressed: Gzip | null = null
  let pieces: AsyncIterator<Buffer> | null = null
  const begin = () => {
    const { readable, controller } = createTarPacker()
    const gzip = createGzip(SETTINGS)
    const feed = async () => {
      await controller.add({ name: `${name}/`, type: 'directory', size: 0, mode: 0o700, mtime }).close()
      for (const file of files) {
        const { fd, size } = openRegular(join(directory, file), file)
        const header: TarHeader = { name: `${name}/${file}`, type: 'file', size, mode: 0o600, mtime }
        await writeEntry(controller.add(header), fd, stop, passed)
      }
      controller.finalize()
    }
    feed().catch((error: unknown) => controller.error(error))
    compress(readable, gzip, passed).catch((error: unknown) => {
      stop.abort(error)
      gzip.destroy(error instanceof Error ? error : new Error(String(error)))
    })
    return gzip
  }
  return new ReadableStream<Uint8Array>(
    {
      pull: async (sink) => {
        compressed ??= begin()
        // Not by Readable.toWeb, which copies each piece.
        pieces ??= compressed[Symbol.asyncIterator]()
        const { done, value } = await pieces.next()
        if (done === true) sink.close()
        else sink.enqueue(value)
      },
      cancel: (reason) => {
        stop.abort(reason)
        compressed?.destroy()
      },
    },
    { highWaterMark: 0 },
  )
}

/** What to call once a piece was compressed. Without it the packer would queue 8 MB. */
type Passed = Map<Uint8Array, () => void>

/** One piece at a time. It is needed no longer once it is compressed. */
async function compress(pieces: ReadableStream<Uint8Array>, gzip: Gzip, passed: Passed): Promise<void> {
  for await (const piece of pieces) {
    await new Promise<void>((resolve, reject) => {
      gzip.write(piece, (error) => (error instanceof Error ? reject(error) : resolve()))
    })
    passed.get(piece)?.()
    passed.delete(piece)
    letGo(piece)
  }
  gzip.end()
}

/** Writes the body of an entry: the content of the file `fd`, which is always closed. */
async function writeEntry(
  sink: WritableStream<Uint8Array>,
  fd: number,
  stop: AbortController,
  passed: Passed,
): Promise<void> {
  const writer = sink.getWriter()
  const file = createReadStream('', { fd, highWaterMark: CHUNK_BYTES, signal: stop.signal })
  for await (const chunk of file) {
    const isPassed = new Promise<void>((resolve) => passed.set(chunk, resolve))
    await writer.write(chunk)
    await isPassed
  }
  await writer.close()
}
