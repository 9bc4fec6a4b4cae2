import { setTimeout as sleep } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import { beginAnew, logState } from '../flushing/copy-log.ts'

/** Pages at which a service that writes begins the log anew, in a thread, while its own changes wait. */
const PAGES = 1000
/** How long the import waits for that. */
const WAIT_MS = 1500
const LOOK_MS = 20
/** While nobody does, the import waits only once in so many times. */
const MOST_TIMES = 16

/**
 * Keeps the write-ahead log short. Whoever begins it anew flushes its head while all other writers wait, and a service
 * that waits for another process answers nobody meanwhile: so this is left to the service if one writes.
 */
export function createShortLog(sqlite: Database.Database): { keep(): Promise<void> } {
  let due = PAGES
  let times = 1
  let alone = 0
  const isAnew = async (): Promise<boolean> => {
    const until = performance.now() + WAIT_MS
    while (performance.now() < until) {
      await sleep(LOOK_MS)
      if (logState(sqlite).pages < PAGES) return true
    }
    return false
  }
  return {
    /** Resolves when more may be written. */
    async keep() {
      const { pages } = logState(sqlite)
      if (pages < PAGES) due = PAGES
      if (pages < due) return
      if (alone > 0) alone--
      else if (await isAnew()) {
        times = 1
        return
      } else {
        alone = times
        times = Math.min(times * 2, MOST_TIMES)
      }
      const { isNew } = beginAnew(sqlite)
      // Otherwise a reader still needs it.
      due = isNew ? PAGES : pages + PAGES
    },
  }
}
