/**
 * The languages of the page, and of what the service writes to people. Tags of BCP 47, each with its own name. A new one is a
 * line here and its catalogues: see CONTRIBUTING.md.
 */
export const LANGUAGES = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  'pt-BR': 'Português (Brasil)',
  pl: 'Polski',
} as const satisfies Record<string, string>

export type Language = keyof typeof LANGUAGES
export const LANGUAGE_TAGS = Object.keys(LANGUAGES).filter(isLanguage)

export function isLanguage(tag: string): tag is Language {
  return Object.hasOwn(LANGUAGES, tag)
}

/**
 * The first language among the wanted tags, in the order of preference, that exists: the same tag, else the same language
 * in another region. English if none does.
 */
export function matchLanguage(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const same = LANGUAGE_TAGS.find((known) => known.toLowerCase() === tag.toLowerCase())
    if (same !== undefined) return same
    const [primary] = tag.toLowerCase().split('-')
    const related = LANGUAGE_TAGS.find((known) => known.toLowerCase().split('-')[0] === primary)
    if (related !== undefined) return related
  }
  return 'en'
}
