import type { Locator, Page } from 'playwright-core'
import { turn } from '../../../src/web/languages/pseudo.ts'

/** Accented by the pseudo-languages, which also write a vowel twice. */
function spelled(letter: string): string {
  const accented = String(turn([letter])).replaceAll(/[\u202b\u202c]/g, '')
  return `[${letter}${accented}]${/[aeiou]/i.test(letter) ? '{1,2}' : ''}`
}
/** A text within another one ends with its own dots, and may be isolated. */
const EDGE = '[·\\u2068\\u2069]*'

/** What an English text is in English and in the pseudo-languages. */
function inAnyWording(text: string | RegExp, isExact: boolean): RegExp {
  const source = typeof text === 'string' ? text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`) : text.source
  const all = source.replaceAll(/\\.|[a-z]|[\s:,!“”$]/gi, (found) =>
    found.startsWith('\\')
      ? found
      : /[a-z]/i.test(found)
        ? spelled(found)
        : `${EDGE}${found}${found === '$' ? '' : EDGE}`,
  )
  return new RegExp(isExact ? `^\\s*${all}${EDGE}\\s*$` : all, 'i')
}

const FINDERS = ['getByLabel', 'getByText', 'getByTitle', 'getByPlaceholder']

/** The same page, on which tests find in each pseudo-language what they name in English. */
export const inEnglish = (page: Page): Page => wrap(page)

function wrap<T extends Page | Locator>(target: T): T {
  return new Proxy(target, {
    get(_, key) {
      const found: unknown = Reflect.get(target, key, target)
      if (typeof found !== 'function') return found
      return (...values: readonly unknown[]) => {
        const result: unknown = Reflect.apply(found, target, translated(String(key), values))
        return isLocator(result) ? wrap(result) : result
      }
    },
  })
}

const isLocator = (value: unknown): value is Locator =>
  typeof value === 'object' && value !== null && value.constructor.name.endsWith('Locator')

function translated(key: string, [first, ...rest]: readonly unknown[]): unknown[] {
  const [options] = rest
  const isExact = Object(options).exact === true
  if (FINDERS.includes(key) && isText(first)) return [inAnyWording(first, isExact)]
  if (key === 'getByRole') {
    const { name, ...others } = Object(options)
    return [first, { ...others, ...(isText(name) && { name: inAnyWording(name, others.exact === true) }) }]
  }
  if (key === 'filter' || key === 'locator') {
    const at = key === 'filter' ? first : options
    const { hasText, hasNotText, ...others } = Object(at)
    const changed = {
      ...others,
      ...(isText(hasText) && { hasText: inAnyWording(hasText, false) }),
      ...(isText(hasNotText) && { hasNotText: inAnyWording(hasNotText, false) }),
    }
    return key === 'filter' ? [changed] : [first, changed]
  }
  return first === undefined && rest.length === 0 ? [] : [first, ...rest]
}

const isText = (value: unknown): value is string | RegExp => typeof value === 'string' || value instanceof RegExp
