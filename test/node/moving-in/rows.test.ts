import { expect, test } from 'vitest'
import { createCopies } from '../../../src/node/moving-in/parts/copies.ts'
import { createRows } from '../../../src/node/moving-in/rows.ts'
import { createSummaries, NO_SUMMARY } from '../../../src/node/moving-in/parts/summaries.ts'

const HOUR = 3_600_000
const U32 = 2 ** 32

test('a value of a packet is a copy within an hour, and never one of another packet, node or type', () => {
  const copies = createCopies()
  const known = new Set<string>()
  // Ids that are next to each other, far apart and at the end of their range; more than fit without growing.
  for (let i = 1; i <= 20_000; i++) {
    const packetId = i % 3 === 0 ? U32 - i : (i * 7919) % U32
    const series = (i % 7) * 4096 + (i % 5)
    const key = `${packetId} ${series}`
    expect(copies.isCopy(packetId, series, HOUR), key).toBe(known.has(key))
    known.add(key)
  }
  expect(copies.isCopy(7919 * 2, 2 * 4096 + 2, HOUR + 1)).toBe(true)
  expect(copies.isCopy(0, 1, HOUR)).toBe(false)
  expect(copies.isCopy(0, 1, HOUR)).toBe(false)
  expect(copies.isCopy(1, -1, 10 * HOUR)).toBe(false)
  expect(copies.isCopy(1, -1, 10 * HOUR)).toBe(true)
  expect(copies.isCopy(7919 * 2, 2 * 4096 + 2, 12 * HOUR)).toBe(false)
})

test('rows keep their numbers and their order while they grow and are used again', () => {
  const rows = createRows({ a: 0, b: 0 })
  for (const n of [1, 2]) {
    for (let i = 0; i < 300; i++) expect(rows.push({ a: i % 10, b: -i * n })).toBe(i)
    const sorted = Array.from(rows.order('a', 'b'), (index) => rows.get(index))
    const expected = Array.from({ length: 300 }, (_, i) => ({ a: i % 10, b: -i * n })).toSorted(
      (x, y) => x.a - y.a || x.b - y.b,
    )
    expect(sorted).toStrictEqual(expected)
    rows.clear()
    expect(rows.length).toBe(0)
  }
})

test('a summary has the values of its span, on one channel or none', () => {
  const hours = createSummaries(HOUR)
  const add = (nodeId: number, metric: number, t: number, v: number, channel = 1) =>
    hours.add({ nodeId, metric, t, n: 1, min: v, max: v, sum: v, last: v, channel })
  const taken: unknown[] = []
  add(1, 1, HOUR + 5, 4)
  add(1, 1, HOUR + 6, -2)
  add(-1, 1, HOUR + 7, 8, 2)
  taken.push([...hours.endedBefore(2 * HOUR - 1)])
  add(-1, 1, HOUR + 8, 1, 3)
  taken.push([...hours.endedBefore(2 * HOUR)])
  add(1, 1, 2 * HOUR, 9)
  taken.push([...hours.endedBefore(3 * HOUR)], [...hours.endedBefore(4 * HOUR)])
  const first = { ...NO_SUMMARY, metric: 1, t: HOUR, n: 2 }
  expect(taken).toStrictEqual([
    [],
    [
      { ...first, nodeId: 1, min: -2, max: 4, sum: 2, last: -2, channel: 1 },
      { ...first, nodeId: -1, min: 1, max: 8, sum: 9, last: 1, channel: -1 },
    ],
    [{ ...first, nodeId: 1, t: 2 * HOUR, n: 1, min: 9, max: 9, sum: 9, last: 9, channel: 1 }],
    [],
  ])
})
