import { Cron } from 'croner'
import { DAY_MS } from '../../shared/time.ts'

/**
 * The distance between runs is checked over this time and up to this number of runs. That is enough, because each day
 * has the same times.
 */
const SAMPLE_MS = 2 * DAY_MS
const SAMPLE_RUNS = 300

/** Minute, hour, day of month, month, day of week. */
export const CRON_PATTERN = /^[0-9A-Za-z*,/#-]{1,60}( [0-9A-Za-z*,/#-]{1,60}){4}$/

/** When a cron pattern is next due after a moment, in milliseconds; null: never. */
export type Slots = (after: number) => number | null

/**
 * Slots of a cron pattern in an IANA time zone. A fixed time is due once a day even when the clock changes: a skipped
 * time at the end of the gap, a repeated time at its first occurrence. Throws for an invalid pattern or time zone.
 */
export function cronSlots(pattern: string, timeZone: string): Slots {
  const cron = new Cron(pattern, { timezone: timeZone, paused: true, mode: '5-part', fixedTimeRule: 'no-wildcard' })
  return (after) => cron.nextRun(new Date(after))?.getTime() ?? null
}

export function isPattern(pattern: string): boolean {
  try {
    return typeof cronSlots(pattern, 'UTC') === 'function'
  } catch {
    return false
  }
}

/** The error in a pattern, in words; null: none. Runs must be at least `minGapMs` apart in local time. */
export function cronProblem(pattern: string, minGapMs: number, now: number): string | null {
  let slots: Slots
  try {
    // Checked in a zone without clock changes, because these may bring two runs closer together than intended.
    slots = cronSlots(pattern, 'UTC')
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 200) : 'not a cron pattern'
  }
  const first = slots(now)
  if (first === null) return 'is never due'
  for (let runs = 0, last = first; runs < SAMPLE_RUNS && last - first < SAMPLE_MS; runs += 1) {
    const next = slots(last)
    if (next === null) return null
    if (next - last < minGapMs) return `runs must be at least ${minGapMs / 60_000} minutes apart`
    last = next
  }
  return null
}
