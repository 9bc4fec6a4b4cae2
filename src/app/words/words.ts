import type { Language } from '../../shared/languages.ts'
import { shownIn, type UnitSystem } from '../../shared/mesh/unit-systems.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/time.ts'

/**
 * The texts of a language by the English ones, which are written where they are needed. A counted text has the forms that
 * `Intl.PluralRules` asks for.
 */
export type Translation = Readonly<Record<string, string | Forms>>
type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { readonly other: string }

/** Reads the texts of a language; English has none. Rejects if the runtime lacks them. */
export type ReadTranslation = (language: Language) => Promise<Translation>

type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never
type Value = string | number
/** What a text with `{name}` in it needs. */
type ValuesOf<Text extends string> = [Names<Text>] extends [never]
  ? readonly []
  : readonly [values: Readonly<Record<Names<Text>, Value>>]

/** A text that is put into words later, for whoever reads it. */
export type Said = { readonly text: string; readonly values: Readonly<Record<string, Value>> }

export function said<const Text extends string>(text: Text, ...[values]: ValuesOf<Text>): Said {
  return { text, values: values ?? {} }
}

/** What tells people something, in one language and in the units of its reader. */
export class Words {
  readonly language: Language
  readonly #texts: Translation
  readonly #locale: string
  readonly #units: UnitSystem

  constructor(language: Language, texts: Translation = {}, units: UnitSystem = 'metric') {
    this.language = language
    this.#units = units
    this.#texts = texts
    this.#locale = language === 'en' ? 'en-GB' : language
  }

  /** A text with its values. Numbers are written as in the language. */
  say<const Text extends string>(text: Text, ...[values]: ValuesOf<Text>): string {
    return this.tell({ text, values: values ?? {} })
  }

  /** `n` things; `{n}` in both texts is the number. */
  count(n: number, one: string, other: string): string {
    const found = this.#texts[other]
    const rule = new Intl.PluralRules(this.#locale).select(n)
    const text = typeof found === 'object' ? (found[rule] ?? found.other) : (found ?? (rule === 'one' ? one : other))
    return this.#fill(text, { n })
  }

  tell({ text, values }: Said): string {
    const found = this.#texts[text]
    return this.#fill(typeof found === 'string' ? found : text, values)
  }

  /** The translation of a text that was put into English already; a text without one stays as it is. */
  translate(english: string): string {
    if (this.language === 'en') return english
    const found = this.#texts[english]
    if (typeof found === 'string') return found
    for (const text of PATTERNS) {
      const values = matched(text, english)
      if (values !== null) return this.tell({ text, values })
    }
    return english
  }

  number(value: number, options: Intl.NumberFormatOptions = {}): string {
    return new Intl.NumberFormat(this.#locale, options).format(value)
  }

  /** A measurement with its unit, in the reader's units; `unit` null: a mere number. */
  measure(value: number, unit: string | null, digits: number): string {
    const shown = shownIn(this.#units, unit)
    const number = this.number(shown.convert(value), { maximumFractionDigits: digits })
    return shown.unit === null ? number : `${number} ${shown.unit}`
  }

  /** `45 min`, `2 h`, `3 d`: rounded down. */
  duration(ms: number): string {
    if (ms < 2 * HOUR_MS) return this.say('{n} min', { n: Math.floor(ms / MINUTE_MS) })
    if (ms < 2 * DAY_MS) return this.say('{n} h', { n: Math.floor(ms / HOUR_MS) })
    return this.say('{n} d', { n: Math.floor(ms / DAY_MS) })
  }

  /** Date and time of day in UTC. */
  time(t: number): string {
    const format = new Intl.DateTimeFormat(this.#locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
    return `${format.format(t)} UTC`
  }

  /** Time of day in a time zone. */
  timeOfDay(t: number, timeZone: string): string {
    return new Intl.DateTimeFormat(this.#locale, { timeStyle: 'short', timeZone }).format(t)
  }

  #fill(text: string, values: Readonly<Record<string, Value>>): string {
    return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
      const value = values[name]
      return value === undefined ? whole : typeof value === 'number' ? this.number(value) : value
    })
  }
}

/** For logs, the command line, and whoever reads another language than those that exist. */
export const ENGLISH = new Words('en')

/** Texts that were put into English: issues of a request, most of them by the library of the schemas, and results. */
const PATTERNS = [
  'Invalid input: expected {wanted}, received {found}',
  'Invalid input: expected {wanted}',
  'Invalid option: expected one of {wanted}',
  'Too small: expected {what} to be >={least}',
  'Too small: expected {what} to be >{least}',
  'Too small: expected {what} to have >={least} {unit}',
  'Too big: expected {what} to be <={most}',
  'Too big: expected {what} to be <{most}',
  'Too big: expected {what} to have <={most} {unit}',
  'Unrecognized key: {keys}',
  'Unrecognized keys: {keys}',
  'Invalid string: must match pattern {pattern}',
  'Invalid {what}',
  'the mail server answered {status}',
  'status {status}',
  'status {status}: no service is set up there',
  'status {status}: redirects are not followed',
  'needed for {what}',
  'unknown token {what}',
  'changing {what} requires this secret to be entered again or cleared: the radio would send it to another destination',
] as const

function matched(text: string, english: string): Record<string, string> | null {
  const names = Array.from(text.matchAll(/\{(\w+)\}/g), ([, name = '']) => name)
  const parts = text.split(/\{\w+\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  const found = new RegExp(`^${parts.join('(.+?)')}$`, 's').exec(english)
  return found === null ? null : Object.fromEntries(names.map((name, at) => [name, found[at + 1] ?? '']))
}
