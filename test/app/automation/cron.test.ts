import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { cronSlots } from '../../../src/app/automation/cron.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const MOMENT = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2060, 0) })

/** A field of a pattern: some of its values, or `*` for null. */
const field = (min: number, max: number) =>
  fc.option(fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 4 }))
const asText = (values: readonly number[] | null) => values?.join(',') ?? '*'

// With both a day of the month and a weekday, either is enough; each is used alone here.
const PATTERN = fc.tuple(
  field(0, 59),
  field(0, 23),
  fc.oneof(fc.tuple(field(1, 28), fc.constant(null)), fc.tuple(fc.constant(null), field(0, 6))),
  field(1, 12),
)
type Fields = typeof PATTERN extends fc.Arbitrary<infer T> ? T : never

const textOf = ([minute, hour, [day, weekday], month]: Fields) =>
  [minute, hour, day, month, weekday].map(asText).join(' ')

function matches([minute, hour, [day, weekday], month]: Fields, t: number): boolean {
  const at = new Date(t)
  const isIn = (values: readonly number[] | null, value: number) => values?.includes(value) ?? true
  return (
    isIn(minute, at.getUTCMinutes()) &&
    isIn(hour, at.getUTCHours()) &&
    isIn(day, at.getUTCDate()) &&
    isIn(month, at.getUTCMonth() + 1) &&
    isIn(weekday, at.getUTCDay())
  )
}

it('the next slot is after the moment and matches the pattern, and no earlier one does', () => {
  fc.assert(
    fc.property(PATTERN, MOMENT, (pattern, after) => {
      const next = cronSlots(textOf(pattern), 'UTC')(after) ?? 0
      expect(next).toBeGreaterThan(after)
      expect(next % MINUTE).toBe(0)
      expect(matches(pattern, next)).toBe(true)
      for (let t = after - (after % MINUTE) + MINUTE; t < Math.min(next, after + DAY / 4); t += MINUTE) {
        expect(matches(pattern, t)).toBe(false)
      }
    }),
  )
})

it('in every time zone, also where the clock jumps, a slot is the same from any earlier moment', () => {
  const zone = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu')
  const jump = fc.constantFrom('2026-03-29T01:00Z', '2026-10-25T01:00Z', '2026-03-08T07:00Z', '2026-04-04T15:00Z')
  const near = fc.tuple(jump, fc.integer({ min: -DAY, max: DAY })).map(([iso, ms]) => Date.parse(iso) + ms)
  fc.assert(
    fc.property(
      PATTERN,
      zone,
      fc.oneof(MOMENT, near),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (pattern, timeZone, after, part) => {
        const slots = cronSlots(textOf(pattern), timeZone)
        const next = slots(after) ?? 0
        expect(next).toBeGreaterThan(after)
        expect(slots(after + Math.floor((next - after - 1) * part))).toBe(next)
      },
    ),
  )
})
