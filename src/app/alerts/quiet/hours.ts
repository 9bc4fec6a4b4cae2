import * as z from 'zod'
import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import { isTimeZone } from '../../config/time-zone.ts'

const timeOfDay = z
  .string()
  .regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'a time HH:MM')
  .describe('HH:MM')

export const quietHoursSchema = z
  .strictObject({
    from: timeOfDay,
    to: timeOfDay.describe('HH:MM; if it is not after `from`, on the next day'),
    timeZone: z.string().max(64).refine(isTimeZone, 'a time zone').describe('IANA name, e.g. Europe/Berlin'),
    days: z
      .array(z.int().min(1).max(7))
      .min(1)
      .max(7)
      .refine((days) => new Set(days).size === days.length, 'each day once')
      .describe('The days on which they begin: 1 is Monday, 7 is Sunday'),
  })
  .refine(({ from, to }) => from !== to, { path: ['to'], message: 'from and to must differ' })
  .meta({ id: 'AlertQuietHours', description: 'When a person wants no messages about alerts' })
export type QuietHours = z.infer<typeof quietHoursSchema>

/** Stored quiet hours; null: none, or another version wrote them. */
export function parseQuietHours(stored: string | null | undefined): QuietHours | null {
  if (stored == null) return null
  try {
    return quietHoursSchema.safeParse(JSON.parse(stored)).data ?? null
  } catch {
    return null
  }
}

/** When the quiet hours end in which a moment is; null: it is in none. */
export function quietUntil({ from, to, timeZone, days }: QuietHours, now: number): number | null {
  const wallOf = wallClock(timeZone)
  const today = Math.floor(wallOf(now) / DAY_MS) * DAY_MS
  for (const day of [today - DAY_MS, today]) {
    // 1 January 1970 was a Thursday.
    if (!days.includes(((day / DAY_MS + 3) % 7) + 1)) continue
    const start = momentOf(day + minutesOf(from), wallOf)
    const end = momentOf(day + minutesOf(to) + (to > from ? 0 : DAY_MS), wallOf)
    if (start <= now && now < end) return end
  }
  return null
}

function minutesOf(time: string): number {
  return (Number(time.slice(0, 2)) * 60 + Number(time.slice(3))) * MINUTE_MS
}

type WallClock = (t: number) => number

/** What the clocks of a zone show at a moment, as milliseconds of a day without a zone. */
function wallClock(timeZone: string): WallClock {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  return (t) => Date.parse(`${format.format(t).replace(' ', 'T')}Z`)
}

/**
 * When the clocks show a time: the first time if they show it twice, and if they skip it, as much later as they are put
 * forward.
 */
function momentOf(wall: number, wallOf: WallClock): number {
  const candidates = [wall - DAY_MS, wall + DAY_MS].map((near) => wall - (wallOf(near) - near))
  const shown = candidates.filter((t) => wallOf(t) === wall)
  return shown.length > 0 ? Math.min(...shown) : Math.max(...candidates)
}
