import type { Disk } from '../../app/base/pacing/disk.ts'
import { randomFillSync } from 'node:crypto'
import { existsSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode, isDiskFull } from './error-code.ts'
import type { FullDiskLog } from './full-log.ts'
import { systemClock } from '../clock.ts'

/** The space reserved for administrators. It is a file, so that other programs cannot take it either. */
const RESERVE_BYTES = 16 * 1024 * 1024
/** With less room a write may fail: SQLite's log grows to some 4 MB. */
const LOW_BYTES = 2 * 1024 * 1024
const SPARE_BYTES = 4 * 1024 * 1024
/** Free space needed to create the reserve, with some to spare so that the disk is not full again immediately. */
const ENOUGH_BYTES = RESERVE_BYTES + 2 * SPARE_BYTES
const CHUNK_BYTES = 256 * 1024
const LOOK_MS = 1000
/** An instance that makes the file writes to it all the time; even a slow card takes less than this. */
const ABANDONED_MS = 60_000

const REMEDY =
  'make room: delete backups, keep data for fewer days, or delete other files; administrators can sign in and do so'

type Needs = {
  readonly dataDir: string
  readonly log: FullDiskLog
}

/** The disk of the data directory, and the file that keeps a part of it free. */
export type DiskReserve = Disk & {
  /**
   * Call it once the database is open. The free bytes inside the file, which new rows can use before the file grows,
   * then count as free space.
   */
  countIn(spareBytes: () => number): void
  /** Creates the file again if there is room for it. Never throws. */
  keep(): Promise<void>
}

export function openReserve({ dataDir, log }: Needs): DiskReserve {
  const file = join(dataDir, 'disk-reserve')
  const draft = `${file}.new`
  let spareBytes = () => 0

  let isFull = false
  let lookedAt = Number.NEGATIVE_INFINITY

  const look = (): void => {
    // What an instance has written of the reserve so far is no loss of room.
    const free = freeBytes(dataDir) + (sizeOf(draft)?.bytes ?? 0)
    const isRoom = existsSync(file)
      ? free >= LOW_BYTES
      : free >= ENOUGH_BYTES || (free >= LOW_BYTES + SPARE_BYTES && spareBytes() >= SPARE_BYTES)
    lookedAt = systemClock.monotonic()
    isFull = !isRoom
    log.noteRoom(isRoom, { file: join(dataDir, 'mesh.db'), freeBytes: free, remedy: REMEDY })
  }
  // Several instances may start at the same time: one makes the file, and the others leave it to that one.
  const make = async (): Promise<void> => {
    try {
      // Not zeros: some file systems allocate no space for them.
      const chunk = randomFillSync(Buffer.alloc(CHUNK_BYTES))
      const handle = await open(draft, 'wx', 0o600)
      try {
        for (let written = 0; written < RESERVE_BYTES; written += CHUNK_BYTES) await handle.write(chunk)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, file)
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return
      await rm(draft, { force: true }).catch(() => {})
      if (!isDiskFull(error)) log.warn('No disk space could be reserved', { file, error })
    }
  }
  return {
    countIn(bytes) {
      spareBytes = bytes
    },
    isFull() {
      if (systemClock.monotonic() - lookedAt >= LOOK_MS) look()
      return isFull
    },
    makeRoom() {
      look()
      if (!isFull || !existsSync(file)) return
      rmSync(file, { force: true })
      log.warn('The disk reserve is released for administrators', { file })
    },
    space() {
      const { total, free } = spaceOf(dataDir)
      return { total, free, spare: spareBytes() }
    },
    async keep() {
      await rmAbandoned(draft)
      if (!existsSync(file) && freeBytes(dataDir) >= ENOUGH_BYTES) await make()
      look()
    },
  }
}

/** Removes a draft whose instance ended while it wrote. One from the future is from before the clock was set. */
async function rmAbandoned(draft: string): Promise<void> {
  const found = sizeOf(draft)
  if (found === null || Math.abs(systemClock.now() - found.changedAt) < ABANDONED_MS) return
  await rm(draft, { force: true }).catch(() => {})
}

function sizeOf(path: string): { readonly bytes: number; readonly changedAt: number } | null {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : { bytes: found.size, changedAt: found.mtimeMs }
}

/** Bytes that the service may still use on the disk of a directory. */
export function freeBytes(dir: string): number {
  return spaceOf(dir).free
}

function spaceOf(dir: string): { total: number; free: number } {
  const { blocks, bavail, bsize } = statfsSync(dir)
  return { total: blocks * bsize, free: bavail * bsize }
}
