export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Whether a time comes from a wrong clock: it is further ahead of `now` than two correct clocks may differ. */
export function isFuture(t: number, now: number, toleranceMs: number): boolean {
  return t > now + toleranceMs
}
