import { parseAccept } from 'hono/utils/accept'
import { type Language, matchLanguage } from '../../shared/languages.ts'
import type { UnitSystem } from '../../shared/mesh/unit-systems.ts'
import type { Log } from '../base/log.ts'
import { ENGLISH, type ReadTranslation, Words } from './words.ts'

type Needs = { readonly translations: ReadTranslation; readonly log: Log }

/** Who reads something. */
export type Reader = { readonly language: Language; readonly units: UnitSystem }

/** The words of a language; English if its texts cannot be read. */
export async function wordsOf({ translations, log }: Needs, { language, units }: Reader): Promise<Words> {
  if (language === 'en') return units === 'metric' ? ENGLISH : new Words('en', {}, units)
  try {
    return new Words(language, await translations(language), units)
  } catch (error) {
    log.warn('The texts of a language could not be read', { language, error })
    return new Words('en', {}, units)
  }
}

/** The words for who sent a request. */
export function wordsFor(ctx: Needs & Caller): Promise<Words> {
  return wordsOf(ctx, { language: languageOf(ctx.acceptLanguage), units: ctx.viewer?.units ?? 'metric' })
}

type Caller = {
  readonly viewer: { readonly language: Language | null; readonly units: UnitSystem | null } | null
  readonly acceptLanguage?: string | undefined
}

/** The language of who sent a request, for a message to somebody whose language is unknown. */
export function languageFor({ viewer, acceptLanguage }: Caller): Language {
  return viewer?.language ?? languageOf(acceptLanguage)
}

/** The language that a request asks for (RFC 9110, 12.5.4). Languages with weight 0 are not wanted. */
export function languageOf(acceptLanguage: string | null | undefined): Language {
  if (acceptLanguage === null || acceptLanguage === undefined || acceptLanguage.length > 500) return 'en'
  return matchLanguage(parseAccept(acceptLanguage).flatMap(({ type, q }) => (q > 0 ? [type] : [])))
}
