import type { MapArchive, OpenMapArchive } from '../../app/mesh/map/archive.ts'
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Config } from '../../app/config/config.ts'
import { shownValue } from '../../app/config/shown.ts'
import { AppError } from '../../app/http/errors.ts'
import type { ByteRange } from '../../app/mesh/map/byte-range.ts'
import { PMTILES_HEADER_BYTES, readPmtilesHeader } from '../../app/mesh/map/pmtiles-header.ts'
import { hasCode } from '../disk/error-code.ts'
import { StartRefused } from '../start/problems.ts'

const CHUNK_BYTES = 256 * 1024

/** The file of MAP_PMTILES; null without one. Throws StartRefused if it can't be read or has another format. */
export async function openMapArchive({ MAP_PMTILES: path }: Pick<Config, 'MAP_PMTILES'>): Promise<MapArchive | null> {
  if (path === null) return null
  try {
    await (await openFile(path)).close()
  } catch (error) {
    const found = `MAP_PMTILES: found ${shownValue(path)}`
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    const expected = 'expected a readable PMTiles 3 file of images or vector tiles'
    throw new StartRefused(`${found}, ${expected}${error instanceof NotPmtiles ? '' : code}`, { cause: error })
  }
  return {
    async open() {
      try {
        return await openFile(path)
      } catch (error) {
        if (!(error instanceof NotPmtiles) && !hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EIO'))
          throw error
        throw new AppError('map_unavailable', undefined, { cause: error })
      }
    },
  }
}

export class NotPmtiles extends Error {
  override name = 'NotPmtiles'
}

export type OpenFile = OpenMapArchive & {
  /** In milliseconds. */
  readonly changedAt: number
  /** The metadata as they are in the file; null: none, or too much. */
  metadata(): Promise<Uint8Array | null>
}

const MAX_METADATA_BYTES = 1024 * 1024

async function readMetadata(file: FileHandle, header: Uint8Array, size: bigint): Promise<Uint8Array | null> {
  const view = new DataView(header.buffer)
  const [offset, length] = [view.getBigUint64(24, true), view.getBigUint64(32, true)]
  if (length === 0n || length > MAX_METADATA_BYTES || offset + length > size) return null
  const bytes = new Uint8Array(Number(length))
  const { bytesRead } = await file.read(bytes, 0, bytes.length, Number(offset))
  return bytesRead === bytes.length ? bytes : null
}

/** Opens a map file. Throws NotPmtiles, and the errors of the disk. */
export async function openFile(path: string): Promise<OpenFile> {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stat = await file.stat({ bigint: true })
    const start = new Uint8Array(PMTILES_HEADER_BYTES)
    if (!stat.isFile() || (await file.read(start, 0, start.length, 0)).bytesRead < start.length) throw new NotPmtiles()
    const header = readPmtilesHeader(start)
    if (header === null) throw new NotPmtiles()
    return {
      header,
      size: Number(stat.size),
      changedAt: Number(stat.mtimeMs),
      metadata: () => readMetadata(file, start, stat.size),
      etag: `"${createHash('sha256').update(`${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs}`).digest('hex').slice(0, 32)}"`,
      stream: (range) => streamRange(file, range),
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Reads a chunk only after the previous one was sent, so that a slow reader occupies the memory of one chunk. */
function streamRange(file: FileHandle, { first, last }: ByteRange): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = first
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const piece = await readPiece(file, at, Math.min(CHUNK_BYTES, last + 1 - at))
        at += piece.length
        controller.enqueue(piece)
        if (at <= last) return
        await file.close()
        controller.close()
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  )
}

/** At most `length` bytes. A failure closes the file: a truncated answer is better than a wrong one. */
async function readPiece(file: FileHandle, at: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const piece = new Uint8Array(length)
    const { bytesRead } = await file.read(piece, 0, length, at)
    if (bytesRead === 0) throw new Error('the map file ends early')
    return piece.subarray(0, bytesRead)
  } catch (error) {
    await file.close()
    throw error
  }
}
