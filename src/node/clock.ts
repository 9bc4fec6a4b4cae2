/**
 * The time, as a port so that tests can control it. `now` is in milliseconds since the epoch; `after` returns a
 * function that cancels it.
 */
export type Clock = {
  now(): number
  after(delayMs: number, run: () => void): () => void
}

/** The clock of this machine. Nothing else reads it. */
export const systemClock: Clock & {
  /** Milliseconds since an arbitrary moment, with fractions. It is never set forward or back. */
  monotonic(): number
} = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

/** A timer that can be restarted: a new start replaces the earlier one. */
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
