import { isLanguage, type Language, matchLanguage } from '../shared/languages.ts'
import { isolateNames } from './isolate.ts'

/**
 * The languages in which a page can be drawn. The last two are English made longer, and English from right to left; they
 * exist for tests of the layout and are not offered.
 */
export type PageLanguage = Language | 'en-XA' | 'ar-XB'

// Like the theme, it is shared with other services at this host.
const KEY = 'language'

/** What this browser chose, or the user who was last signed in here; null: the browser's own languages decide. */
export function storedLanguage(): PageLanguage | null {
  try {
    const found = localStorage.getItem(KEY) ?? ''
    return isLanguage(found) || found === 'en-XA' || found === 'ar-XB' ? found : null
  } catch {
    // Storage is blocked: the browser's languages decide.
    return null
  }
}

/** Draws the page anew in another language; null: in the browser's. Nothing happens if this browser knows the choice. */
export function changeLanguage(chosen: Language | null): void {
  if (storedLanguage() === chosen) return
  try {
    if (chosen === null) localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, chosen)
  } catch {
    // Without storage the page would be drawn in the old language again, and again.
    return
  }
  if (wantedLanguage() !== language) location.reload()
}

function wantedLanguage(): PageLanguage {
  return storedLanguage() ?? matchLanguage(typeof navigator === 'undefined' ? [] : navigator.languages)
}

const languages = import.meta.glob<Readonly<Record<string, unknown>>>(
  ['./languages/*.ts', '!**/{plural,pseudo,translations}.ts'],
  {
    import: 'words',
  },
)

type Translate = (name: string, english: object) => unknown

async function load(wanted: PageLanguage): Promise<readonly [PageLanguage, Translate | null]> {
  if (wanted === 'en') return [wanted, null]
  try {
    if (wanted === 'en-XA' || wanted === 'ar-XB') {
      const { lengthen, turn } = await import('./languages/pseudo.ts')
      return [wanted, (_, english) => (wanted === 'en-XA' ? lengthen : turn)(english)]
    }
    const words = await languages[`./languages/${wanted}.ts`]?.()
    if (words === undefined) return ['en', null]
    const all = new Map<string, unknown>(Object.entries(words))
    return [wanted, (name) => all.get(name)]
  } catch {
    // Its file did not arrive: English is better than no page.
    return ['en', null]
  }
}

/**
 * The language of this page, and its texts. Decision: docs/decisions/languages.md
 * Every module that imports this one waits until they are loaded, so texts may be
 * read anywhere, also while a module is evaluated. Another language is another load of the page.
 */
const [language, translate] = await load(wantedLanguage())
export { language }

/** In which the API tells what went wrong. */
export const apiLanguage: Language = language === 'en-XA' || language === 'ar-XB' ? 'en' : language

/** Whether its texts are written from right to left. */
export const isRightToLeft: boolean = language === 'ar-XB'

/** For `Intl`. English is British. */
export const locale: string = language === 'en' || language === 'en-XA' ? 'en-GB' : language

/** Texts of any wording: translations have the same keys and parameters, and other sentences. */
export type Words<E> = E extends string
  ? string
  : E extends (...values: infer Values) => infer Result
    ? (...values: Values) => Words<Result>
    : { readonly [Key in keyof E]: Words<E[Key]> }

/** English texts, or the same in the language of this page. `name`: the constant that holds them. */
export function catalog<const E extends object>(name: string, english: E): Words<E> {
  // Safe, because the compiler holds every translation to the keys and parameters of the English texts.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const words = isolateNames((translate?.(name, english) ?? english) as Words<E>, isRightToLeft)
  originals.set(words, english)
  return words
}

const originals = new WeakMap<object, object>()

/** The English texts of a catalog: many who read another language know the English terms, too. */
export function englishOf<W extends object>(words: W): W {
  // Safe for the same reason.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (originals.get(words) ?? words) as W
}

/** Tells the browser, and with it screen readers, hyphenation and the layout, in which language the page is. */
export function applyLanguage(): void {
  document.documentElement.lang = language
  document.documentElement.dir = isRightToLeft ? 'rtl' : 'ltr'
}
