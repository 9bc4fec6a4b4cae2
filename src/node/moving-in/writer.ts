import { closeSync, fdatasync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Statement } from '../../db/store.ts'
import type { SqliteStore } from '../database.ts'
import { createShortLog } from './short-log.ts'

/**
 * How long one transaction may hold the only writer, in milliseconds. SQLite's lock is not fair, but a process that
 * waits for it asks again after 1, 3, 8 and 18 ms: a shorter hold and a longer pause let it in.
 */
const HOLD_MS = 5
const PAUSE_MS = 10
const LONGEST_PAUSE_MS = 60
/** Rows between two looks at the clock. */
const ROWS_AT_ONCE = 8

/** Of the pages that were used last, in KiB: the kernel has the others. */
const CACHE_KIB = 2000

/** Writes rows in short transactions with pauses between them, or nothing at all. */
export type Writer = {
  readonly isDry: boolean
  /** Runs `put` for each row; returns how often it returned true. In a dry run it returns 0. */
  each<T>(rows: Iterable<T>, put: (row: T) => boolean): Promise<number>
  /** One transaction; nothing in a dry run. */
  atomic(statements: readonly Statement[]): Promise<void>
  /** Resolves when all that was written is on the disk. */
  flush(): Promise<void>
}

const flushFile = promisify(fdatasync)

/** Its commits, and all others of the connection, are not flushed before `flush`. `onSlice`: after each transaction. */
export function createWriter(store: SqliteStore, isDry: boolean, onSlice: () => void): Writer {
  store.sqlite.pragma(`cache_size = -${CACHE_KIB}`)
  // A commit that flushes lets all other writers wait for the disk.
  store.sqlite.pragma('synchronous = NORMAL')
  store.sqlite.pragma('wal_autocheckpoint = 0')
  const log = createShortLog(store.sqlite)
  const pause = async (begun: number) => {
    const tookMs = performance.now() - begun
    onSlice()
    await sleep(Math.min(LONGEST_PAUSE_MS, Math.max(PAUSE_MS, Math.ceil(2 * tookMs))))
    if (!store.sqlite.memory) await log.keep()
  }
  return {
    isDry,
    async each(rows, put) {
      let written = 0
      if (isDry) return 0
      const left = rows[Symbol.iterator]()
      let next = left.next()
      while (next.done !== true) {
        const begun = performance.now()
        const slice = store.sqlite.transaction(() => {
          for (let n = 0; next.done !== true && (n % ROWS_AT_ONCE > 0 || performance.now() - begun < HOLD_MS); n++) {
            if (put(next.value)) written++
            next = left.next()
          }
        })
        await store.lazily(() => slice.immediate())
        await pause(begun)
      }
      return written
    },
    async atomic(statements) {
      const [first, ...rest] = statements
      if (first === undefined || isDry) return
      const begun = performance.now()
      await store.atomic([first, ...rest], 'lazily')
      await pause(begun)
    },
    async flush() {
      if (store.sqlite.memory) return
      // What is no longer in the log was flushed before it was copied.
      const fd = openSync(`${store.sqlite.name}-wal`, 'r+')
      try {
        await flushFile(fd)
      } finally {
        closeSync(fd)
      }
    },
  }
}
