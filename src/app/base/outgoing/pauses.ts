import { HOUR_MS, SECOND_MS } from '../../../shared/time.ts'

/** Pauses between attempts, by the number of failures in a row. */
const PAUSES_MS = [10, 30, 120, 300, 900, 1800, 3600].map((seconds) => seconds * SECOND_MS)

/** How long to wait after a failed attempt that followed `failures` others, in ms. */
export function pauseAfter(failures: number): number {
  return PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)] ?? HOUR_MS
}
