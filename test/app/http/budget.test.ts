import { expect, test } from 'vitest'
import { createBudget } from '../../../src/app/http/limits/budget.ts'

const SIZES = {
  each: { burstMs: 80, msPerSecond: 8 },
  all: { burstMs: 200, msPerSecond: 20 },
  newcomers: { burstMs: 50, msPerSecond: 5 },
}
const START = 1_800_000_000_000

test('a caller gets a burst, then what refills, and is told how long to wait', () => {
  const budget = createBudget(SIZES)
  expect(budget.take('a', 60, START)).toBe(0)
  expect(budget.take('a', 40, START)).toBe(2500)
  expect(budget.take('a', 40, START + 2500)).toBe(0)
  expect(budget.take('b', 40, START + 2500)).toBe(0)
})

test('what was taken in advance is settled by what it really took, however much', () => {
  const budget = createBudget(SIZES)
  expect(budget.take('a', 1, START)).toBe(0)
  budget.settle('a', 159, START)
  expect(budget.take('a', 1, START)).toBe(Math.ceil(81_000 / 8))
  budget.settle('a', -150, START)
  expect(budget.take('a', 1, START)).toBe(0)
})

test('many greedy callers leave newcomers their part', () => {
  const budget = createBudget(SIZES)
  const greedy = Array.from({ length: 5 }, (_, n) => `greedy ${n}`)
  for (const who of greedy) expect(budget.take(who, 40, START)).toBe(0)
  for (let at = START; at < START + 2000; at += 200) {
    const waits = greedy.map((who) => budget.take(who, 10, at))
    expect(waits.some((wait) => wait > 0)).toBe(true)
    expect(budget.take(`newcomer at ${at}`, 1, at)).toBe(0)
  }
})

test('all together never use more than the two stores hold', () => {
  const budget = createBudget(SIZES)
  let used = 0
  for (let ms = 0; ms < 60_000; ms += 100) {
    for (let n = 0; n < 20; n++) if (budget.take(`${ms} ${n}`, 5, START + ms) === 0) used += 5
  }
  expect(used).toBeLessThanOrEqual(200 + 50 + (20 + 5) * 60)
  expect(used).toBeGreaterThan(25 * 55)
})

test('a clock that jumps locks nobody out, and gives nothing away', () => {
  const budget = createBudget(SIZES)
  const future = START + 10 * 365 * 86_400_000
  expect(budget.take('a', 80, future)).toBe(0)
  expect(budget.take('a', 80, START)).toBe(10_000)
  expect(budget.take('a', 80, START + 10_000)).toBe(0)
})
