import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { nextTurn } from '../../../app/base/pacing/next-turn.ts'
import { hasCode, isDiskFull } from '../../disk/error-code.ts'
import type { Plan } from './plan.ts'
import type { Planet } from './planet.ts'
import { RegionFailed } from './problems.ts'
import { requestsFor, type TileRequest } from './requests.ts'

/** No tile is larger after it was unpacked. */
const MAX_PLAIN_TILE_BYTES = 32 * 1024 * 1024
/** How often what is on the disk is noted. */
const NOTE_MS = 1000

const unpackBytes = promisify(gunzip)

export type Progress = { readonly done: number; readonly fetchedBytes: number }

type Job = {
  readonly planet: Planet
  readonly plan: Plan
  /** The unfinished file, and the one that it replaces. */
  readonly draft: string
  readonly file: string
  /** Requests whose tiles the draft has already; null: there is no draft of this plan. */
  readonly done: number | null
  readonly signal: AbortSignal
  readonly monotonic: () => number
  /** Runs a read again after a pause, if it may succeed then. */
  readonly persistently: <T>(read: () => Promise<T>) => Promise<T>
  /** Throws RegionFailed if so many more bytes would fill the disk. */
  readonly demandRoom: (bytes: number) => void
  /** Counts at once. */
  readonly onFetched: (progress: Progress) => void
  /** After the tiles of the requests so far are on the disk. */
  readonly onWritten: (progress: Progress) => Promise<void>
}

/**
 * Fetches, checks and writes the tiles of a region, and replaces the map in use by it. Holds one request and one
 * unpacked tile in memory. Throws RegionFailed, PlanetChanged, and the reason of its signal.
 */
export async function writeRegion(job: Job): Promise<void> {
  if (job.done !== null && (await isInPlace(job))) return
  try {
    const draft = await openDraft(job)
    try {
      await writeTiles(job, draft)
      await draft.handle.sync()
    } finally {
      await draft.handle.close()
    }
    await rename(job.draft, job.file)
    await syncDirectoryOf(job.file)
  } catch (error) {
    if (isDiskFull(error)) throw new RegionFailed('noRoom', error)
    throw error
  }
}

type Draft = { readonly handle: FileHandle; readonly done: number }

async function openDraft({ plan, draft, done, demandRoom, onWritten }: Job): Promise<Draft> {
  if (done !== null && done > 0) {
    const kept = await open(draft, 'r+').catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return null
      throw error
    })
    if (kept !== null) return { handle: kept, done }
  }
  // Before there is another draft, so that a crash between leaves no note about an earlier one.
  await onWritten({ done: 0, fetchedBytes: 0 })
  await rm(draft, { force: true })
  demandRoom(plan.bytes)
  const handle = await open(draft, 'wx', 0o600)
  try {
    await writeAt(handle, plan.head, 0)
    await handle.sync()
  } catch (error) {
    await handle.close()
    throw error
  }
  return { handle, done: 0 }
}

async function writeTiles(job: Job, { handle, done: skipped }: Draft): Promise<void> {
  const { planet, plan, signal } = job
  let [done, fetchedBytes] = [0, 0]
  let notedAt = -Infinity
  const note = async () => {
    await handle.datasync()
    await job.onWritten({ done, fetchedBytes })
    notedAt = job.monotonic()
  }
  for (const request of requestsFor(plan.contents)) {
    if (done >= skipped) {
      signal.throwIfAborted()
      job.demandRoom(request.contents.reduce((sum, content) => sum + plan.contents.lengthOf(content), 0))
      const bytes = await job.persistently(() => planet.read(plan.tilesAt + request.offset, request.length))
      await writeRequest(job, handle, request, bytes)
    } else await nextTurn()
    done += 1
    fetchedBytes += request.length
    job.onFetched({ done, fetchedBytes })
    if (done > skipped && job.monotonic() - notedAt >= NOTE_MS) await note()
  }
}

async function writeRequest(
  { plan }: Job,
  handle: FileHandle,
  { offset, contents }: TileRequest,
  bytes: Buffer,
): Promise<void> {
  const { sourceOf, lengthOf, targetOf } = plan.contents
  // Tiles that lie together in both files are written together.
  let [from, to, at] = [0, 0, 0]
  for (const content of contents) {
    const begin = sourceOf(content) - offset
    const end = begin + lengthOf(content)
    if (plan.isTilePacked) await demandSound(bytes.subarray(begin, end))
    const target = plan.head.length + targetOf(content)
    if (begin === to && target === at + to - from) {
      to = end
      continue
    }
    await writeAt(handle, bytes.subarray(from, to), at)
    ;[from, to, at] = [begin, end, target]
  }
  await writeAt(handle, bytes.subarray(from, to), at)
}

/** Throws RegionFailed for a tile that can't be unpacked, or is too large then. */
async function demandSound(tile: Uint8Array): Promise<void> {
  await unpackBytes(tile, { maxOutputLength: MAX_PLAIN_TILE_BYTES }).catch((error: unknown) => {
    throw new RegionFailed('damagedTile', error)
  })
}

async function writeAt(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, at + done)
    done += bytesWritten
  }
}

/** Whether an earlier process was ended after it had put the map in its place. */
async function isInPlace({ plan, draft, file }: Job): Promise<boolean> {
  if (await exists(draft)) return false
  const handle = await open(file, 'r').catch(() => null)
  if (handle === null) return false
  try {
    const { size } = await handle.stat()
    const head = Buffer.alloc(plan.head.length)
    return (
      size === plan.bytes &&
      (await handle.read(head, 0, head.length, 0)).bytesRead === head.length &&
      head.equals(plan.head)
    )
  } finally {
    await handle.close()
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function syncDirectoryOf(file: string): Promise<void> {
  const handle = await open(dirname(file), 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
