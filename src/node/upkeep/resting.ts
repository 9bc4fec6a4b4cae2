import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type Database from 'better-sqlite3'
import { createTimer, type Clock, systemClock } from '../clock.ts'

const LOOK_MS = 3000
/** The share of that time which the service may compute while it rests. */
const RESTS_BELOW = 0.1
/** Giving memory back takes 20 ms, a hundredth of this. */
const WORK_MS = 2000
/** It takes longer with a larger heap. From here on, what comes before the next time grows with it. */
const LONG_MS = 25
/** How many looks in a row must find a service at rest of which it takes twice as long: half a minute. */
const MOST_RESTS = 10

type Needs = {
  /** Milliseconds that the event loop has worked so far. */
  readonly worked: () => number
  readonly giveBack: () => void
  readonly clock?: Clock
}

/**
 * Gives memory back when the service rests after it has worked, at first after the start. Without this it would keep what
 * it needed at most: nothing is collected while nothing is allocated.
 * Decision: docs/decisions/memory-is-given-back.md
 */
export function startResting({ worked, giveBack, clock = systemClock }: Needs): { stop(): void } {
  const due = createTimer(clock)
  let before = worked()
  let since = WORK_MS
  let rests = 0
  let needed = { work: WORK_MS, rests: 1 }
  const look = () => {
    const now = worked()
    const share = (now - before) / LOOK_MS
    since += now - before
    before = now
    rests = share < RESTS_BELOW ? rests + 1 : 0
    if (rests >= needed.rests && since >= needed.work) {
      giveBack()
      since = 0
      before = worked()
      needed = neededAfter(before - now)
    }
    due.start(LOOK_MS, look)
  }
  due.start(LOOK_MS, look)
  return { stop: due.stop }
}

/** What must come before the next time; `ms`: how long this time held the event loop. */
function neededAfter(ms: number): { readonly work: number; readonly rests: number } {
  const more = Math.max(0, ms / LONG_MS - 1)
  return { work: WORK_MS * (1 + more), rests: Math.min(MOST_RESTS, Math.max(1, Math.ceil(MOST_RESTS * more))) }
}

export const workedSoFar = (): number => performance.eventLoopUtilization().active

/**
 * Gives back the pages that SQLite keeps and the objects that nothing uses. From now on all is collected when a third has
 * been added; V8 itself lets a heap of this size double, and forgets the bytes of answers beside it.
 */
export function memoryGiver(sqlite: Database.Database): () => void {
  setFlagsFromString('--heap-growing-percent=30')
  // Node has no other way to call it in a process that was started without the flag.
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  return () => {
    sqlite.pragma('shrink_memory')
    if (typeof collect === 'function') collect()
  }
}
