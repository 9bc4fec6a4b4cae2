import { locale } from '../language.ts'

const pluralRules = new Intl.PluralRules('en')
export const numberFormat = new Intl.NumberFormat(locale)

/** A number with its noun: `1 user`, `2,000 users`. */
export function quantity(n: number, one: string, other: string): string {
  return `${numberFormat.format(n)} ${pluralRules.select(n) === 'one' ? one : other}`
}
