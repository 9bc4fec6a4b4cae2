import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import './page.ts'
import { pace } from '../../../src/web/state/live.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Work that counts how often it began, and ends when told. */
function createWork() {
  const ends: (() => void)[] = []
  const work = () => new Promise<void>((resolve) => void ends.push(resolve))
  return { ends, work }
}

test('the first request is served at once, those of the next second together at its end', async () => {
  const { ends, work } = createWork()
  const paced = pace(work, 1000)
  paced.ask()
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await vi.advanceTimersByTimeAsync(500)
  for (let n = 0; n < 50; n++) paced.ask()
  expect(ends).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(500)
  expect(ends).toHaveLength(2)
})

test('long work does not run twice at once, and requests meanwhile are served after it', async () => {
  const { ends, work } = createWork()
  const paced = pace(work, 1000)
  paced.ask()
  paced.ask()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await vi.advanceTimersByTimeAsync(1000)
  expect(ends).toHaveLength(2)
  ends[1]?.()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(ends).toHaveLength(2)
})

test('after a rest the next request is served at once again; after the end none is', async () => {
  const { ends, work } = createWork()
  const paced = pace(work, 1000)
  paced.ask()
  ends[0]?.()
  await vi.advanceTimersByTimeAsync(5000)
  paced.ask()
  expect(ends).toHaveLength(2)
  ends[1]?.()
  await vi.advanceTimersByTimeAsync(10)
  paced.ask()
  paced.stop()
  await vi.advanceTimersByTimeAsync(5000)
  expect(ends).toHaveLength(2)
})
