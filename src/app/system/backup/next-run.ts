import { Cron } from 'croner'
import { backOff } from '../../../shared/back-off.ts'
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'

const RETRIES = { firstMs: 5 * MINUTE_MS, mostMs: HOUR_MS }

export type ScheduleState = {
  readonly timeZone: string
  /** HH:MM */
  readonly time: string
  /** When this schedule was switched on. */
  readonly since: number
  /** When the latest run that succeeded began. */
  readonly succeededAt: number | null
  /** When the latest run failed, and how many did in a row; null after a success. */
  readonly failed: { readonly at: number; readonly count: number } | null
}

/**
 * The time of the next run, at the earliest `now`. Runs once a day: if the clock change skips its time, at the end of
 * the gap; if it repeats it, at the first occurrence. A single immediate run makes up for all missed ones, and replaces
 * the day's regular run if that is less than 12 hours away. A failed run is repeated after 5 minutes, then 10, 20, up
 * to an hour.
 */
export function nextRun(now: number, state: ScheduleState): number {
  const { timeZone, since, succeededAt: last, failed } = state
  const slots = dailySlots(state.time, timeZone)
  const isCovered = (slot: number) =>
    last !== null && isSameDay(slot, last, timeZone) && (slot - last < 12 * HOUR_MS || since > last)
  let slot = slots(Math.max(since, last ?? 0))
  while (isCovered(slot)) slot = slots(slot)
  const isRetry = failed !== null && slot <= now && failed.at <= now
  const delay = isRetry ? backOff(failed.count - 1, RETRIES) : 0
  return Math.max(now, slot, isRetry ? failed.at + delay : 0)
}

/** The first time HH:MM after a moment. */
function dailySlots(time: string, timeZone: string): (after: number) => number {
  const [hour, minute] = time.split(':').map(Number)
  const cron = new Cron(`${minute} ${hour} * * *`, { timezone: timeZone, paused: true })
  return (after) => {
    const next = cron.nextRun(new Date(after))
    if (next === null) throw new Error(`there is no ${time} after ${after}`)
    return next.getTime()
  }
}

function isSameDay(a: number, b: number, timeZone: string): boolean {
  const day = new Intl.DateTimeFormat('sv-SE', { timeZone })
  return day.format(a) === day.format(b)
}
