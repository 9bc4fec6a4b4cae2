import type { Clock } from '../../src/node/clock.ts'

/** Time that only advances when told to, from `start` in milliseconds since the epoch. */
export function createManualClock(start: number): Clock & { advance(ms: number): void } {
  let now = start
  let due: { readonly at: number; readonly run: () => void }[] = []
  return {
    now: () => now,
    after(delayMs, run) {
      const timer = { at: now + delayMs, run }
      due.push(timer)
      return () => {
        due = due.filter((each) => each !== timer)
      }
    },
    advance(ms) {
      const end = now + ms
      for (;;) {
        const next = due.toSorted((a, b) => a.at - b.at)[0]
        if (next === undefined || next.at > end) break
        due = due.filter((each) => each !== next)
        now = next.at
        next.run()
      }
      now = end
    },
  }
}
