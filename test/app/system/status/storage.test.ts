import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { forecastRoom as forecast, type Sample } from '../../../../src/app/system/status/storage.ts'
import { START } from '../../../support/app.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const GB = 1_000_000_000

/** With the room of the latest sample. */
const forecastRoom = (all: readonly Sample[], now: number) => forecast(all, all.at(-1)?.room ?? 0, now)

/** A sample each three hours, the last one at START. */
function samples(roomAt: (days: number) => number, { days = 7, total = 100 * GB } = {}): Sample[] {
  const steps = days * 8
  return Array.from({ length: steps + 1 }, (_, index) => {
    const at = START - (steps - index) * 3 * HOUR
    const room = roomAt((at - START) / DAY)
    return { at, database: total - room, room, total }
  })
}

describe('a forecast', () => {
  test('says when a room that shrinks steadily ends', () => {
    expect(
      forecastRoom(
        samples((days) => 10 * GB - days * GB),
        START,
      ),
    ).toStrictEqual({
      bytesPerDay: GB,
      fullAt: START + 10 * DAY,
    })
  })

  test('starts from the room of this moment, which may be unknown', () => {
    const measured = samples((days) => 10 * GB - days * GB)
    expect(forecast(measured, 3 * GB, START)?.fullAt).toBe(START + 3 * DAY)
    expect(forecast(measured, null, START)).toBeNull()
  })

  test('is not moved by one backup, or by a disk that somebody tidied up', () => {
    const backup = forecastRoom(
      samples((days) => 10 * GB - days * GB - (days > -2 && days < -1.5 ? 5 * GB : 0)),
      START,
    )
    expect(backup?.bytesPerDay).toBeCloseTo(GB, -7)
    const tidied = forecastRoom(
      samples((days) => 10 * GB - days * GB - (days < -6.5 ? 8 * GB : 0)),
      START,
    )
    expect(Number(tidied?.fullAt)).toBeGreaterThan(START + 9 * DAY)
    expect(Number(tidied?.fullAt)).toBeLessThan(START + 13 * DAY)
  })

  test('has no end while the room stays, grows, or would last for more than ten years', () => {
    for (const perDay of [0, -GB, 0.001 * GB]) {
      expect(
        forecastRoom(
          samples((days) => 10 * GB - days * perDay),
          START,
        ),
      ).toStrictEqual({
        bytesPerDay: perDay,
        fullAt: null,
      })
    }
  })

  test('needs a day of this disk', () => {
    expect(forecastRoom([], START)).toBeNull()
    expect(forecastRoom(samples(() => GB).slice(-8), START)).toBeNull()
    expect(forecastRoom(samples(() => GB).slice(-9), START)).not.toBeNull()
    const other = samples((days) => 10 * GB - days * GB, { total: 1000 * GB }).slice(0, -4)
    const own = samples((days) => 50 * GB - days * GB).slice(-4)
    expect(forecastRoom([...other, ...own], START)).toBeNull()
  })

  test('takes a file system that changes its size a little for the same disk', () => {
    const moving = samples((days) => 10 * GB - days * GB).map((each, index) => ({
      ...each,
      total: each.total * (1 + 0.01 * (index % 5)),
    }))
    expect(forecastRoom(moving, START)?.fullAt).toBe(START + 10 * DAY)
  })

  test('never lies in the past, whatever was measured', () => {
    const any = fc.array(
      fc.record({
        at: fc.integer({ min: START - 8 * DAY, max: START + DAY }),
        database: fc.nat(),
        room: fc.nat(),
        total: fc.nat(),
      }),
      { maxLength: 56 },
    )
    fc.assert(
      fc.property(any, (measured) => {
        const sorted = measured.toSorted((a, b) => a.at - b.at)
        const { fullAt = null, bytesPerDay = 0 } = forecastRoom(sorted, START) ?? {}
        if (fullAt === null) return
        expect(fullAt).toBeGreaterThanOrEqual(START)
        expect(bytesPerDay).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})
