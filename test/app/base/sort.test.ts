import { expect, test } from 'vitest'
import { sortInTurns } from '../../../src/app/base/pacing/sort.ts'
import { turnsDuring } from '../../support/turns.ts'

type Pair = readonly [key: number, at: number]
const byKey = ([a]: Pair, [b]: Pair) => a - b

/** Keys that repeat, in an order that is the same in each run. */
const scattered = (length: number): Pair[] => Array.from({ length }, (_, at) => [(at * 7919) % 613, at])

test.each([0, 1, 2, 999, 1000, 1001, 2000, 4500, 20_000])('%i values come in the order of toSorted', async (length) => {
  const all = scattered(length)
  const sorted = await sortInTurns(all, byKey)
  expect(sorted).toStrictEqual(all.toSorted(byKey))
  expect(all).toStrictEqual(scattered(length))
})

test('others get their turns while many values are sorted', async () => {
  const turns = await turnsDuring(() => sortInTurns(scattered(20_000), byKey))
  // Each value is put in order once, and merged five times.
  expect(turns).toBeGreaterThanOrEqual(60)
})
