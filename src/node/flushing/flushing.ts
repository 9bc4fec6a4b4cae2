import { fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import type Database from 'better-sqlite3'
import type { Log } from '../../app/base/log.ts'
import { openCheckpoints } from './checkpoints.ts'
import { logState } from './copy-log.ts'
import type { Writes } from './writes.ts'

/** Pages after which SQLite itself copies the log into the database. */
const PAGES = 1000
/** A change that waits for no flush is flushed after this time, and the length of the log is looked at sooner. */
const LAZY_MS = 10_000
const LOOK_MS = 500

const flushFile = promisify(fdatasync)

export type Flushing = Writes & {
  /** Flushes what was written, and ends the thread. */
  close(): Promise<void>
}

/**
 * Makes the writes of a connection durable without waiting for the disk on the event loop. Commits at NORMAL are in the
 * log, where every process sees them; a change resolves when a flush of the log that began after it has ended. Many
 * changes share a flush. A thread copies the log into the database.
 * Decision: docs/decisions/flushes-beside-the-loop.md
 */
export function openFlushing(sqlite: Database.Database, log: Log, flushLog?: () => Promise<void>): Flushing {
  // Before the descriptor: SQLite removes the file only when its last connection closes. Without locks in this file,
  // SQLite does not mind another descriptor of the process (sqlite.org/howtocorrupt.html, 2.2).
  const fd = openSync(`${sqlite.name}-wal`, 'r+')
  const flushNow = flushLog ?? (() => flushFile(fd))
  sqlite.pragma('synchronous = NORMAL')
  sqlite.pragma('wal_autocheckpoint = 0')
  const changes = sqlite.prepare<[], number>('select total_changes()').pluck()
  const checkpoints = openCheckpoints(sqlite.name)
  let depth = 0
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  /** Writers wait for this while the log is begun anew. */
  let gate: Promise<void> | null = null
  let copying: Promise<void> | null = null
  let copyAt = PAGES
  /** What was written may not be on the disk although a later flush succeeds. */
  let isDoubtful = false
  const timers = new Map<number, NodeJS.Timeout>()

  const inside = <T>(run: () => T): T => {
    depth++
    try {
      return run()
    } finally {
      depth--
    }
  }
  const startAnew = async (): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    try {
      const { isNew } = await checkpoints.run('begin-anew')
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
      const first = await checkpoints.run('copy')
      copyAt = first.pages + PAGES
      // Otherwise a reader still needs the rest, such as a backup.
      if (first.copied === first.pages) await startAnew()
    } catch (error) {
      copyAt = pages + PAGES
      log.error('The write-ahead log could not be copied into the database', { error })
    }
  }
  const copyIfLong = () => {
    const { pages } = logState(sqlite)
    // Another process has begun it anew.
    if (pages < PAGES) copyAt = PAGES
    if (copying === null && pages >= copyAt) void alone(() => copy(pages))
  }
  /**
   * After a failed flush the kernel takes what it could not write for written: only a new log is certain. The pages are
   * copied into the database and flushed there first.
   */
  const settle = async () => {
    await alone(async () => {
      if (!(await startAnew())) throw refused('what the disk refused to flush is still needed by readers')
      isDoubtful = false
    })
  }
  const attempt = async () => {
    if (isDoubtful) await settle()
    try {
      await flushNow()
    } catch (error) {
      isDoubtful = true
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
  const flushLazily = () =>
    void flush().catch((error: unknown) => log.error('Changes could not be flushed to the disk', { error }))
  const change = <T>(run: () => T): T | Promise<T> => {
    if (depth > 0) return run()
    if (gate !== null) return gate.then(() => change(run))
    const before = changes.get()
    const result = inside(run)
    // Without a change of its own it may repeat what is not on the disk yet.
    const due = changes.get() === before && !isDoubtful ? (next ?? running) : flush()
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
    async close() {
      for (const timer of timers.values()) clearTimeout(timer)
      try {
        await flush()
        await copying
      } finally {
        await checkpoints.close()
      }
    },
  }
}

/** In the form of SQLite, whose commits fail in the same way. */
function refused(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code: 'SQLITE_IOERR_FSYNC' })
}
