import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { backOff } from '../../src/shared/back-off.ts'

test('doubles from the first wait up to the longest', () => {
  const waits = [0, 1, 2, 3, 4, 5, 6, 7].map((failures) => backOff(failures, { firstMs: 1000, mostMs: 60_000 }))
  expect(waits).toStrictEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
})

test('jitter also makes the longest wait longer or shorter', () => {
  const limits = { firstMs: 200, mostMs: 5000 }
  expect(backOff(1, { ...limits, jitter: 0.75 })).toBe(300)
  expect(backOff(30, { ...limits, jitter: 1.25 })).toBe(6250)
})

test('stays within its limits however often something fails', () => {
  fc.assert(
    fc.property(fc.nat(1e6), fc.integer({ min: 1, max: 1e6 }), fc.nat(1e6), (failures, firstMs, more) => {
      const wait = backOff(failures, { firstMs, mostMs: firstMs + more })
      expect(wait).toBeGreaterThanOrEqual(firstMs)
      expect(wait).toBeLessThanOrEqual(firstMs + more)
      expect(backOff(failures + 1, { firstMs, mostMs: firstMs + more })).toBeGreaterThanOrEqual(wait)
    }),
  )
})
