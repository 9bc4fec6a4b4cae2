import { expect, test } from 'vitest'
import { isFuture, MINUTE_MS } from '../../src/shared/time.ts'

test('a time is in the future from one millisecond beyond the allowed clock difference', () => {
  const now = Date.UTC(2026, 0, 15, 12)
  const times = [now - 1, now, now + MINUTE_MS, now + MINUTE_MS + 1]
  expect(times.map((t) => isFuture(t, now, MINUTE_MS))).toStrictEqual([false, false, false, true])
  expect(times.map((t) => isFuture(t, now, 0))).toStrictEqual([false, false, true, true])
})
