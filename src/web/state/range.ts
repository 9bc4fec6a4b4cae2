import { isNameOf, namesOf } from '../../shared/names.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'

// Which time a page shows, in its address: `range=24h`, or `from=` and `to=` in milliseconds.

/** The ranges that end now, by their lengths in milliseconds. */
export const RANGES = {
  '1h': HOUR_MS,
  '6h': 6 * HOUR_MS,
  '24h': DAY_MS,
  '7d': 7 * DAY_MS,
  '30d': 30 * DAY_MS,
  '1y': 365 * DAY_MS,
} as const satisfies Record<string, number>
export type RangeName = keyof typeof RANGES
export const RANGE_NAMES: readonly RangeName[] = namesOf(RANGES)

/** Times in milliseconds; `to` is exclusive and later than `from`. */
export type TimeSpan = { readonly from: number; readonly to: number }
/** One that ends now, or one between two times. */
export type Range = RangeName | TimeSpan

/** The last moment that a date can hold. */
const END_OF_TIME = 8_640_000_000_000_000

export function isRangeName(text: string): text is RangeName {
  return isNameOf(RANGES, text)
}

/**
 * The range in an address; `fallback` if it names none: null is all of time. `isRefused`: it names one that does not exist,
 * so `fallback` is shown. In addresses of other versions a range has its length in milliseconds, or days for its ends.
 */
export function readRange<F extends Range | null>(
  query: URLSearchParams,
  fallback: F,
): { readonly range: Range | F; readonly isRefused: boolean } {
  const found = namedRange(query) ?? spanBetween(query) ?? daysBetween(query.get('since'), query.get('until'))
  if (found === null || found === 'refused') return { range: fallback, isRefused: found === 'refused' }
  return { range: found, isRefused: false }
}

type Found = Range | 'refused' | null

function namedRange(query: URLSearchParams): Found {
  const name = query.get('range')
  if (name === null) return null
  if (isRangeName(name)) return name
  return RANGE_NAMES.find((known) => String(RANGES[known]) === name) ?? 'refused'
}

function spanBetween(query: URLSearchParams): Found {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  // In older addresses, `from` is a node.
  if (to === '' && (from === '' || from.startsWith('!'))) return null
  // And of the audit log, both are days.
  if (`${from}${to}`.includes('-')) return daysBetween(from || null, to || null)
  const span = { from: timeOf(from), to: timeOf(to) }
  return span.from < span.to && span.to <= END_OF_TIME ? span : 'refused'
}

const timeOf = (text: string): number => (/^\d{1,16}$/.test(text) ? Number(text) : Number.NaN)

/** The days of older addresses, both included, in the time zone of this device. */
function daysBetween(since: string | null, until: string | null): Found {
  if (since === null && until === null) return null
  const { start, end } = { start: since === null ? 0 : startOfDay(since), end: until ?? today() }
  // Not now: that would be another range each time it is asked for.
  const span = { from: start, to: startOfDay(end, 1) }
  return span.from < span.to ? span : 'refused'
}

function today(): string {
  const now = new Date()
  return `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, '0')}-${String(now.getDate()).padStart(2, '0')}`
}

function startOfDay(day: string, later = 0): number {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day) ?? []
  return Math.max(0, new Date(Number(year), Number(month) - 1, Number(date) + later).getTime())
}

/**
 * What `setQuery` changes for a range; null: the page's usual one, which is in no address. The last two are in older
 * addresses only.
 */
export function rangeQuery(range: Range | null): Readonly<Record<'range' | 'from' | 'to' | 'since' | 'until', string>> {
  const none = { range: '', from: '', to: '', since: '', until: '' }
  if (range === null) return none
  return typeof range === 'string'
    ? { ...none, range }
    : { ...none, from: String(Math.round(range.from)), to: String(Math.round(range.to)) }
}

/** From when to when; a range that ends now ends at `now`. */
export function spanOf(range: Range, now: number): TimeSpan {
  return typeof range === 'string' ? { from: Math.max(0, now - RANGES[range]), to: now } : range
}

/** Whether a time is in the range. What ends now goes on. */
export function isWithin(range: Range, time: number, now: number): boolean {
  const { from, to } = spanOf(range, now)
  return time >= from && (typeof range === 'string' || time < to)
}

/** The same as `since` and `until` of a list; null: all of time. What ends now goes on. */
export function timesOf(range: Range | null): { readonly since?: string; readonly until?: string } {
  if (range === null) return {}
  const { from, to } = spanOf(range, Date.now())
  return { since: String(from), ...(typeof range !== 'string' && { until: String(to) }) }
}

/** A text that is the same for the same range. */
export function rangeKey(range: Range | null): string {
  return range === null || typeof range === 'string' ? (range ?? '') : `${range.from}-${range.to}`
}
