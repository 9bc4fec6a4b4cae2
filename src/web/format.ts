import { clockHours } from './display.ts'
import { locale } from './language.ts'
import { unitTexts } from './strings/units.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

// Control characters, and characters that change the direction of the text around them.
const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** A name given by somebody, for use within a line: it cannot break the line or change its direction. */
export function plain(name: string): string {
  return name.replace(UNPRINTABLE, '').trim()
}

/** An age, short enough for a table. */
export function age(then: number, now: number): string {
  const ms = Math.max(0, now - then)
  if (ms < 10_000) return unitTexts.now
  if (ms < MINUTE) return inUnit('seconds', ms / 1000)
  if (ms < HOUR) return inUnit('minutes', ms / MINUTE)
  if (ms < 2 * DAY) return inUnit('hours', ms / HOUR)
  return inUnit('days', ms / DAY)
}

const inUnit = (unit: 'seconds' | 'minutes' | 'hours' | 'days', n: number): string =>
  unitTexts[unit].replace('#', String(Math.floor(n)))

/** A length of time in its two largest units. */
export function duration(seconds: number): string {
  const units = [
    [Math.floor(seconds / 86_400), 'days'],
    [Math.floor(seconds / 3600) % 24, 'hours'],
    [Math.floor(seconds / 60) % 60, 'minutes'],
    [Math.floor(seconds) % 60, 'seconds'],
  ] as const
  const first = units.findIndex(([n]) => n > 0)
  if (first === -1) return inUnit('seconds', 0)
  return units
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => inUnit(unit, n))
    .join(' ')
}

/** A format for 12 or 24 hours, created on first use. */
function timeFormat(options: Intl.DateTimeFormatOptions): (t: number) => string {
  const made = new Map<boolean, Intl.DateTimeFormat>()
  return (t) => {
    const hour12 = clockHours.value === '12'
    const format = made.get(hour12) ?? new Intl.DateTimeFormat(locale, { ...options, hour12 })
    made.set(hour12, format)
    return format.format(t)
  }
}

/** A format for each time zone, for 12 or 24 hours. */
export function zonedTime(timeZone: string): (t: number) => string {
  return timeFormat({
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
  })
}

const dateFormat = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' })
const dayFormat = new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long' })
const shortDayFormat = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' })
const numberFormat = new Intl.NumberFormat(locale)

export const dateTime = timeFormat({ dateStyle: 'medium', timeStyle: 'medium' })
/** Without the seconds. */
export const dateMinutes = timeFormat({ dateStyle: 'medium', timeStyle: 'short' })
export const clock = timeFormat({ hour: '2-digit', minute: '2-digit' })
export const clockSeconds = timeFormat({ timeStyle: 'medium' })
const stampOfYear = timeFormat({
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

/** For tables of the recent past: shows the date only if it is not today, and the year only if it is not this one. */
export function stamp(t: number): string {
  const then = new Date(t)
  const today = new Date()
  if (then.toDateString() === today.toDateString()) return clockSeconds(t)
  return then.getFullYear() === today.getFullYear() ? stampOfYear(t) : dateTime(t)
}
export const date = (t: number): string => dateFormat.format(t)
export const shortDay = (t: number): string => shortDayFormat.format(t)
export const day = (t: number): string => dayFormat.format(t)
const DAY_NAMES = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })

/** A day by its name; `today` in the form of `toDateString`. */
export function dayName(t: number, today: string): string {
  const days = Math.round((new Date(new Date(t).toDateString()).getTime() - new Date(today).getTime()) / DAY)
  return days === 0 || days === -1 ? capital(DAY_NAMES.format(days, 'day')) : day(t)
}

/** With a capital first letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** With a small first letter, unless it begins with an abbreviation. */
export function uncapital(text: string): string {
  return /^\p{Lu}(?:\p{Lu}|\d)/u.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1)
}

/** `a, b or c`. */
export function anyOf(names: readonly string[]): string {
  return new Intl.ListFormat(locale, { type: 'disjunction' }).format(names)
}

export const count = (n: number): string => numberFormat.format(n)

const shortFormat = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 })

/** In a few characters, e.g. `1.2K`. */
export const shortCount = (n: number): string => shortFormat.format(n)

const decimalFormats = new Map<number, Intl.NumberFormat>()

const oneDecimal = new Intl.NumberFormat(locale, {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
  useGrouping: false,
})

/** With exactly one decimal, for values below each other. */
export const tenths = (n: number): string => oneDecimal.format(Number(n.toFixed(1)) + 0).replace('-', '−')

/** With at most `digits` decimals. */
export function decimal(n: number, digits = 1): string {
  const known = decimalFormats.get(digits)
  const format = known ?? new Intl.NumberFormat(locale, { maximumFractionDigits: digits, useGrouping: false })
  if (known === undefined) decimalFormats.set(digits, format)
  // Rounded as `toFixed` does, and without a minus before 0.
  return format.format(Number(n.toFixed(digits)) + 0).replace('-', '−')
}

/** The time zone of this device, e.g. `Europe/Berlin`. */
export const zoneName = (): string => dateFormat.resolvedOptions().timeZone

/** `HELTEC_V3` as `HELTEC V3`: a product keeps its capital letters. */
export function modelName(name: string): string {
  return name.replaceAll('_', ' ')
}

/** `2.7.15.567b8ea` as `2.7.15`: without the hash of the build. */
export function firmwareName(version: string): string {
  return version.replace(/^(\d+\.\d+\.\d+)\.[0-9a-f]{6,}$/i, '$1')
}

const sizeFormat = new Intl.NumberFormat(locale, { minimumSignificantDigits: 3, maximumSignificantDigits: 3 })

/** Decimal units, as disks are sold. */
export function bytes(n: number): string {
  if (n < 1000) return `${n} B`
  const units = ['kB', 'MB', 'GB', 'TB']
  const step = Math.min(units.length, Math.floor(Math.log10(n) / 3))
  return `${sizeFormat.format(n / 1000 ** step)} ${units[step - 1] ?? ''}`
}

/** `LONG_FAST` as `Long fast`. */
export function humanize(name: string): string {
  const words = name.replaceAll('_', ' ').toLowerCase()
  return capital(words)
}
