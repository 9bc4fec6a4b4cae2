import { expect, test } from 'vitest'
import { age, bytes, decimal, duration, firmwareName, humanize } from '../../../src/web/format.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

test.each([
  [-HOUR, 'now'],
  [9999, 'now'],
  [10 * SECOND, '10 s'],
  [MINUTE - 1, '59 s'],
  [MINUTE, '1 min'],
  [HOUR - 1, '59 min'],
  [HOUR, '1 h'],
  [48 * HOUR - 1, '47 h'],
  [48 * HOUR, '2 d'],
])('%i ms ago is %s', (ms, text) => {
  expect(age(0, ms)).toBe(text)
})

test.each([
  [0, '0 s'],
  [59.9, '59 s'],
  [60, '1 min'],
  [3661, '1 h 1 min'],
  [3600, '1 h'],
  [86_400 + 59, '1 d'],
  [90_000, '1 d 1 h'],
])('%d seconds take %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text)
})

test.each([
  [999, '999 B'],
  [1000, '1.00 kB'],
  [1_234_567, '1.23 MB'],
])('%d bytes are %s', (n, text) => {
  expect(bytes(n)).toBe(text)
})

test('numbers have a real minus and no needless zeros; protocol names become words', () => {
  expect([decimal(-1.25), decimal(2), decimal(0.049), decimal(1.005, 2)]).toStrictEqual(['−1.3', '2', '0', '1'])
  expect(humanize('LONG_FAST')).toBe('Long fast')
})

test.each([
  ['2.7.15.567b8ea', '2.7.15'],
  ['2.7.26.demo', '2.7.26.demo'],
  ['2.5.0', '2.5.0'],
])('firmware %s is %s', (version, shown) => {
  expect(firmwareName(version)).toBe(shown)
})
