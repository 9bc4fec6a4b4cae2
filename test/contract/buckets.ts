import type { Buckets } from '../../src/app/http/limits/buckets.ts'
import { describe, expect, test } from 'vitest'

const NOW = Date.UTC(2026, 0, 15, 12)
const SIZE = { most: 3, everyMs: 500 }

/** What every implementation of buckets must do. `make` returns empty ones at each call. */
export function bucketContract(name: string, make: () => Promise<Buckets> | Buckets): void {
  describe(`buckets: ${name}`, () => {
    test('allow a number at once, then one for each refill', async () => {
      const buckets = await make()
      const take = (at: number) => buckets.take('a', SIZE, NOW + at)
      expect([await take(0), await take(0), await take(0)]).toStrictEqual([0, 0, 0])
      expect(await take(0)).toBe(500)
      expect(await take(400)).toBe(100)
      expect(await take(500)).toBe(0)
      expect(await take(500)).toBe(500)
      // Two were refilled, and a third one half a second later.
      expect([await take(1500), await take(1500)]).toStrictEqual([0, 0])
      expect(await take(1500)).toBe(500)
    })

    test('count each key separately', async () => {
      const buckets = await make()
      const one = { most: 1, everyMs: 500 }
      expect(await buckets.take('a', one, NOW)).toBe(0)
      expect(await buckets.take('b', one, NOW)).toBe(0)
      expect(await buckets.take('a', one, NOW)).toBe(500)
    })

    test('allow only their number of many simultaneous requests', async () => {
      const buckets = await make()
      const waits = await Promise.all(Array.from({ length: 10 }, () => buckets.take('a', SIZE, NOW)))
      expect(waits.filter((wait) => wait === 0)).toHaveLength(3)
    })

    test('allow what was put back once more, and never hold more than their size', async () => {
      const buckets = await make()
      const one = { most: 1, everyMs: 500 }
      expect(await buckets.take('a', one, NOW)).toBe(0)
      await buckets.giveBack('a', one)
      await buckets.giveBack('a', one)
      expect(await buckets.take('a', one, NOW)).toBe(0)
      expect(await buckets.take('a', one, NOW)).toBe(500)
      await buckets.giveBack('unknown', one)
      expect(await buckets.take('unknown', one, NOW)).toBe(0)
    })

    test('lock nobody out after a clock that was ahead', async () => {
      const buckets = await make()
      for (let n = 0; n < 3; n++) expect(await buckets.take('a', SIZE, NOW + 1e9)).toBe(0)
      expect(await buckets.take('a', SIZE, NOW)).toBe(500)
      expect(await buckets.take('a', SIZE, NOW + 500)).toBe(0)
      expect(await buckets.take('a', SIZE, NOW + 500)).toBe(500)
    })

    test('count fractions of a millisecond', async () => {
      const buckets = await make()
      const size = { most: 4, everyMs: 0.5 }
      for (let n = 0; n < 4; n++) expect(await buckets.take('a', size, NOW)).toBe(0)
      expect(await buckets.take('a', size, NOW)).toBeGreaterThan(0)
      expect([await buckets.take('a', size, NOW + 1), await buckets.take('a', size, NOW + 1)]).toStrictEqual([0, 0])
    })
  })
}
