import { isFuture, MINUTE_MS } from '../shared/time.ts'

/** 2020-01-01. The protocol is newer than that, so an earlier time means that the clock was never set. */
export const EARLIEST_MS = Date.UTC(2020, 0, 1)
/** How far another clock may run ahead of ours. */
export const MAX_AHEAD_MS = 10 * MINUTE_MS

/**
 * A device's unix seconds as milliseconds since the epoch; null when the device has no clock (0) or a wrong one:
 * before 2020, or more than ten minutes ahead of `now` (milliseconds).
 */
export function parseDeviceTime(seconds: number, now: number): number | null {
  const time = seconds * 1000
  return time >= EARLIEST_MS && !isFuture(time, now, MAX_AHEAD_MS) ? time : null
}
