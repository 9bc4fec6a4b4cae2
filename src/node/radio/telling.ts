import type { Heard } from '../../app/mesh/heard/heard.ts'
import type { StoredBatch } from '../../app/mesh/ingest/ingest.ts'
import { type Clock, createTimer } from '../clock.ts'

/** Batches that are stored within this time are reported together. */
const TOGETHER_MS = 100

/** What was new in stored batches, and the batches. */
export type Told = { readonly news: StoredBatch['news']; readonly batch: readonly Heard[] }

export type Telling = {
  readonly add: (stored: Told) => void
  /** Reports what still waits, at once. */
  readonly end: () => void
}

/**
 * Passes stored batches on to `tell`: at once, but in a flood ten times a second, because each report wakes every
 * reader of live events, and names each node that was heard once.
 */
export function createTelling(clock: Clock, tell: (told: Told) => void): Telling {
  let waiting: Told[] = []
  const rest = createTimer(clock)
  let isResting = false
  const pass = () => {
    const all = waiting
    waiting = []
    isResting = all.length > 0
    if (!isResting) return
    rest.start(TOGETHER_MS, pass)
    tell({ news: all.flatMap(({ news }) => news), batch: all.flatMap(({ batch }) => batch) })
  }
  return {
    add(stored) {
      waiting.push(stored)
      if (!isResting) pass()
    },
    end() {
      pass()
      rest.stop()
      isResting = false
    },
  }
}
