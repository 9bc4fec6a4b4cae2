/**
 * The time, as a port so that tests can control it. `now` is in milliseconds since the epoch; `after` returns a
 * function that cancels it.
 */
export type Clock = {
  now(): number
  after(delayMs: number, run: () => void): () => void
}

/** The clock of this machine, which nothing else asks. */
export const systemClock: Clock & {
  /** Milliseconds since any moment, with fractions; never set back or forth. */
  monotonic(): number
} = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

/** One timer that can be started again: the earlier start is forgotten. */
export type Timer = { start(delayMs: number, run: () => void): void; stop(): void }

export function createTimer(clock: Clock): Timer {
  let cancel: (() => void) | null = null
  const stop = () => {
    cancel?.()
    cancel = null
  }
  return {
    stop,
    start(delayMs, run) {
      stop()
      cancel = clock.after(delayMs, () => {
        cancel = null
        run()
      })
    },
  }
}
