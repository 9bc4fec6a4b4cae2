import { fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import type Database from 'better-sqlite3'
import type { Log } from '../../app/base/log.ts'
import { type Checkpoints, openCheckpoints } from './checkpoints.ts'
import { NOT_FLUSHED } from '../../db/store.ts'
import { hasCode } from '../disk/error-code.ts'
import { logState } from './copy-log.ts'
import type { Writes } from './writes.ts'

/** Pages after which SQLite itself copies the log into the database. */
const PAGES = 1000
/** A change that waits for no flush is flushed after this time, and the length of the log is looked at sooner. */
const LAZY_MS = 10_000
const LOOK_MS = 500
/** After this many failures of the thread in a row SQLite copies the log at commits, as it does without it. */
const PATIENCE = 3
/** A flush that takes longer than this is told, and a stop waits no longer for it. */
const STALL_MS = 30_000

const flushFile = promisify(fdatasync)

export type Flushing = Writes & {
  /** Whether the disk has not answered for so long that a new start may help. */
  isStalled(): boolean
  /** Flushes what was written, and ends the thread. Rejects if the disk does not answer within 30 s. */
  close(): Promise<void>
}

export type FlushingPorts = {
  readonly log: Log
  /**
   * Ends this process, without closing the database: the disk refused pages that only the log still has, and only the
   * next opening of the database checks and copies the whole log again.
   */
  readonly giveUp: () => void
  /** Of tests: what flushes the log, and what copies it. */
  readonly flushLog?: () => Promise<void>
  readonly copier?: Checkpoints
}

/**
 * Makes the writes of a connection durable without waiting for the disk on the event loop. Commits at NORMAL are in the
 * log, where every process sees them; a change resolves when a flush of the log that began after it has ended. Many
 * changes share a flush. A thread copies the log into the database.
 * Decision: docs/decisions/flushes-beside-the-loop.md
 */
export function openFlushing(sqlite: Database.Database, { log, giveUp, flushLog, copier }: FlushingPorts): Flushing {
  // Before the descriptor: SQLite removes the file only when its last connection closes. Without locks in this file,
  // SQLite does not mind another descriptor of the process (sqlite.org/howtocorrupt.html, 2.2).
  const fd = openSync(`${sqlite.name}-wal`, 'r+')
  const flushNow = flushLog ?? (() => flushFile(fd))
  sqlite.pragma('synchronous = NORMAL')
  sqlite.pragma('wal_autocheckpoint = 0')
  const changes = sqlite.prepare<[], number>('select total_changes()').pluck()
  const checkpoints = copier ?? openCheckpoints(sqlite.name)
  let depth = 0
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  /** Writers wait for this while the log is begun anew. */
  let gate: Promise<void> | null = null
  let copying: Promise<void> | null = null
  let copyAt = PAGES
  /** What was written may not be on the disk although a later flush succeeds. */
  let isDoubtful = false
  let settling: Promise<void> | null = null
  /** When the flush that is under way, or the thread's work for which writers wait, began. */
  const waiting = new Set<number>()
  let failures = 0
  let isClosed = false
  let hasEnded = false
  const timers = new Map<number, NodeJS.Timeout>()

  const inside = <T>(run: () => T): T => {
    depth++
    try {
      return run()
    } finally {
      depth--
    }
  }
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const begun = performance.now()
    const told = setTimeout(() => log.error('The disk has not flushed changes for 30 s'), STALL_MS).unref()
    waiting.add(begun)
    try {
      return await work()
    } finally {
      clearTimeout(told)
      waiting.delete(begun)
    }
  }
  const ask = async (request: 'copy' | 'begin-anew') => {
    if (hasEnded) throw new Error('the database is being closed')
    try {
      const answer = await checkpoints.run(request)
      if (failures >= PATIENCE) sqlite.pragma('wal_autocheckpoint = 0')
      failures = 0
      return answer
    } catch (error) {
      // The pages of the database that were not flushed are only in the log, and SQLite takes them for copied.
      if (hasCode(error, 'SQLITE_IOERR_FSYNC', 'SQLITE_IOERR_DIR_FSYNC')) giveUp()
      if (++failures === PATIENCE) sqlite.pragma(`wal_autocheckpoint = ${PAGES}`)
      throw error
    }
  }
  const startAnew = async (): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    try {
      const { isNew } = await timed(() => ask('begin-anew'))
      if (isNew) copyAt = PAGES
      return isNew
    } finally {
      gate = null
      resolve()
    }
  }
  const alone = (run: () => Promise<void>): Promise<void> => {
    const begun = (copying ?? Promise.resolve())
      .catch(() => {})
      .then(run)
      .finally(() => {
        if (copying === begun) copying = null
      })
    copying = begun
    return begun
  }
  const copy = async (pages: number) => {
    try {
      const first = await ask('copy')
      copyAt = first.pages + PAGES
      // Otherwise a reader still needs the rest, such as a backup.
      if (first.copied === first.pages) await startAnew()
    } catch (error) {
      copyAt = pages + PAGES
      log.error('The write-ahead log could not be copied into the database', { error })
    }
  }
  const copyIfLong = () => {
    // What is in doubt is copied only to begin the log anew.
    if (isClosed || isDoubtful) return
    try {
      const { pages } = logState(sqlite)
      // Another process has begun it anew.
      if (pages < PAGES) copyAt = PAGES
      if (copying === null && pages >= copyAt) void alone(() => copy(pages))
    } catch (error) {
      log.error('The length of the write-ahead log could not be read', { error })
    }
  }
  /**
   * After a failed flush the kernel takes what it could not write for written: only a new log is certain. The pages are
   * copied into the database and flushed there first. Until then no change begins. If a reader needs the old log, the
   * pages would be kept in memory alone for as long as it reads, so the next start looks which of them are whole.
   */
  const settle = (): Promise<void> => {
    settling ??= timed(() =>
      alone(async () => {
        if (!(await startAnew())) {
          giveUp()
          throw refused('what the disk refused to flush is still needed by readers')
        }
        isDoubtful = false
      }),
    ).finally(() => {
      settling = null
    })
    return settling
  }
  const attempt = async () => {
    if (isDoubtful) await settle()
    try {
      await timed(flushNow)
    } catch (error) {
      isDoubtful = true
      // At once, while the kernel still has what it could not write.
      settle().catch((problem: unknown) => log.error('Changes could not be flushed to the disk', { error: problem }))
      throw refused('the write-ahead log could not be flushed to the disk', error)
    }
    copyIfLong()
  }
  const begin = async (before: Promise<void> | null) => {
    await before?.catch(() => {})
    // Changes from here on need another flush.
    running = next
    next = null
    await attempt()
  }
  const flush = (): Promise<void> => {
    if (next !== null) return next
    const begun = begin(running).finally(() => {
      if (running === begun) running = null
    })
    next = begun
    return begun
  }
  const after = (ms: number, run: () => void) => {
    if (timers.has(ms)) return
    const due = () => {
      timers.delete(ms)
      run()
    }
    timers.set(ms, setTimeout(due, ms).unref())
  }
  const pending = () => (isDoubtful ? settle() : (next ?? running))
  const flushLazily = () =>
    void flush().catch((error: unknown) => log.error('Changes could not be flushed to the disk', { error }))
  const change = <T>(run: () => T): T | Promise<T> => {
    if (depth > 0) return run()
    if (isDoubtful) return settle().then(() => change(run))
    if (gate !== null) return gate.then(() => change(run))
    const before = changes.get()
    const result = inside(run)
    // Without a change of its own it may repeat what is not on the disk yet.
    const due = changes.get() === before ? pending() : flush()
    return due === null ? result : due.then(() => result)
  }
  const lazily = <T>(run: () => T | Promise<T>): T | Promise<T> => {
    if (depth > 0) return run()
    if (gate !== null) return gate.then(() => lazily(run))
    after(LOOK_MS, copyIfLong)
    after(LAZY_MS, flushLazily)
    return inside(run)
  }
  return {
    change,
    lazily,
    pending,
    isStalled: () => [...waiting].some((begun) => performance.now() - begun > STALL_MS),
    async close() {
      isClosed = true
      for (const timer of timers.values()) clearTimeout(timer)
      await inTime(
        (async () => {
          try {
            await flush()
            await copying
          } finally {
            hasEnded = true
            await checkpoints.close()
          }
        })(),
      )
    },
  }
}

/** In the form of SQLite, whose commits fail in the same way. */
function refused(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code: NOT_FLUSHED })
}

async function inTime(work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(refused('the disk did not flush the latest changes in time')), STALL_MS)
  try {
    await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
