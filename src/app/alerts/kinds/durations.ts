import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'

/** `45 min`, `2 h`, `3 d`: rounded down. */
export function inWords(ms: number): string {
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`
  return ms < 2 * DAY_MS ? `${Math.floor(ms / HOUR_MS)} h` : `${Math.floor(ms / DAY_MS)} d`
}
