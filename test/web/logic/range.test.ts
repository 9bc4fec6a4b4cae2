import { afterEach, expect, test, vi } from 'vitest'
import './page.ts'
import { BASE } from '../../../src/web/api.ts'
import { href, place } from '../../../src/web/router.ts'
import { isWithin, rangeKey, rangeQuery, readRange, spanOf } from '../../../src/web/state/range.ts'

const read = (query: string) => readRange(new URLSearchParams(query), '24h')
const DAY_MS = 86_400_000

test.each([
  ['', '24h'],
  ['range=1h', '1h'],
  ['range=1y&q=hill', '1y'],
  ['from=1000&to=2000', { from: 1000, to: 2000 }],
  ['from=0&to=8640000000000000', { from: 0, to: 8_640_000_000_000_000 }],
  // A name goes before both ends.
  ['range=7d&from=1000&to=2000', '7d'],
  // The sender of packets, in older addresses.
  ['from=!a0cb0001', '24h'],
  ['range=604800000', '7d'],
  ['since=2026-11-20&until=2026-11-20', { from: localDay(20), to: localDay(21) }],
  ['until=2026-11-20', { from: 0, to: localDay(21) }],
  // The days of the audit log.
  ['from=2026-11-20&to=2026-11-20', { from: localDay(20), to: localDay(21) }],
  ['to=2026-11-20', { from: 0, to: localDay(21) }],
])('the address %j has the range %j', (query, range) => {
  expect(read(query)).toEqual({ range, isRefused: false })
})

function localDay(date: number): number {
  return new Date(2026, 10, date).getTime()
}

test.each([
  'range=2h',
  'range=',
  'range=toString',
  'range=1e3',
  'from=1000',
  'to=1000',
  'from=2000&to=1000',
  'from=1000&to=1000',
  'from=-1&to=1000',
  'from=1.5&to=1000',
  'from=0&to=8640000000000001',
  'from=!a0cb0001&to=1000',
  'from=2026-11-21&to=2026-11-20',
  'from=2026-11-21&to=1000',
  'since=yesterday',
  'since=2026-11-21&until=2026-11-20',
  'since=9999999-01-01',
])('the address %j has no range that exists, so the usual one is shown', (query) => {
  expect(read(query)).toEqual({ range: '24h', isRefused: true })
})

test('what is written is read again, and an older form is replaced', () => {
  for (const range of ['6h', { from: 1000, to: 2000 }] as const) {
    const query = new URLSearchParams('since=2026-11-20&range=1h&from=1&to=2')
    for (const [name, value] of Object.entries(rangeQuery(range))) {
      if (value === '') query.delete(name)
      else query.set(name, value)
    }
    expect(readRange(query, null)).toEqual({ range, isRefused: false })
    expect(query.has('since')).toBe(false)
  }
  expect(Object.values(rangeQuery(null)).join('')).toBe('')
  expect([rangeKey('6h'), rangeKey({ from: 1, to: 2 }), rangeKey(null)]).toEqual(['6h', '1-2', ''])
})

test('a named range ends now, and one between two times stays where it is', () => {
  expect(spanOf('7d', 10 * DAY_MS)).toEqual({ from: 3 * DAY_MS, to: 10 * DAY_MS })
  expect(spanOf('1y', DAY_MS)).toEqual({ from: 0, to: DAY_MS })
  expect(spanOf({ from: 1, to: 2 }, DAY_MS)).toEqual({ from: 1, to: 2 })
  // A device may be behind the service.
  const within = (range: '7d' | { from: number; to: number }, times: readonly number[]) =>
    times.filter((time) => isWithin(range, time, 10 * DAY_MS))
  expect(within('7d', [3 * DAY_MS - 1, 3 * DAY_MS, 11 * DAY_MS])).toEqual([3 * DAY_MS, 11 * DAY_MS])
  expect(within({ from: 1, to: 3 }, [0, 1, 2, 3])).toEqual([1, 2])
})

test('links between pages with a range carry it along, and a link to a moment stays as it is', () => {
  const at = (path: string) => {
    const { pathname, searchParams } = new URL(path, 'https://mesh.example.org')
    place.value = { path: pathname, query: searchParams }
  }
  const link = (path: string) => href(path).slice(BASE.length - 1)
  at('/packets?range=6h&node=!a0cb0001')
  expect(
    ['/map', '/nodes/!a0cb0001', '/messages?channel=0', '/nodes/compare?ids=!a0cb0001', '/topology', '/neighbors'].map(
      link,
    ),
  ).toEqual([
    '/map?range=6h',
    '/nodes/!a0cb0001?range=6h',
    '/messages?channel=0&range=6h',
    '/nodes/compare?ids=!a0cb0001&range=6h',
    '/topology?range=6h',
    '/neighbors?range=6h',
  ])
  const others = ['/', '/nodes', '/settings', '/messages?channel=0&message=7', '/map?trace=3', '/map?range=1h']
  expect(others.map(link)).toEqual(others)
  at('/packets?from=!a0cb0001')
  expect(link('/map')).toBe('/map')
  at('/settings?range=6h')
  expect(link('/map')).toBe('/map')
  at('/map?from=5&to=9')
  expect(link('/packets?node=!a0cb0001')).toBe('/packets?node=!a0cb0001&from=5&to=9')
})

afterEach(() => {
  vi.useRealTimers()
})

test('older days without an end are one range for all of today, so that a page does not load it again and again', () => {
  const query = new URLSearchParams('from=2026-11-01')
  vi.useFakeTimers({ now: new Date(2026, 10, 28, 12) })
  const { range } = readRange(query, null)
  vi.setSystemTime(new Date(2026, 10, 28, 12, 0, 1))
  expect(readRange(query, null).range).toStrictEqual(range)
  expect(range).toStrictEqual({ from: new Date(2026, 10, 1).getTime(), to: new Date(2026, 10, 29).getTime() })
})
