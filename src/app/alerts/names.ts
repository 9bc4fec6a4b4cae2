import * as z from 'zod'
import { removeHidden } from '../../shared/hidden-characters.ts'
import { MAX_RULE_NAME } from '../../shared/limits.ts'

/** The name of a rule or a destination. */
export const plainName = z
  .string()
  .min(1)
  .max(MAX_RULE_NAME)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'no control characters or lone surrogates')
  .refine((name) => name === name.trim(), 'no spaces at the ends')

/** Letters that are written from right to left (Unicode, bidirectional classes R and AL). */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

/**
 * A text from the mesh for use in a sentence: one line of at most `most` characters, without hidden ones. Right-to-left
 * text is isolated (UAX #9); otherwise it would reorder the sentence.
 */
export function cleanText(text: string, most: number): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll(/\s+/gu, ' ')
  const plain = removeHidden(line).trim()
  const letters = Array.from(plain)
  // An emoji that is cut may leave half of itself.
  const shown = letters.length <= most ? plain : `${removeHidden(letters.slice(0, most - 1).join(''))}…`
  return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown
}
