import * as z from 'zod'
import { MAX_RULE_NAME } from '../../shared/limits.ts'

/** The name of a rule or a destination. */
export const plainName = z
  .string()
  .min(1)
  .max(MAX_RULE_NAME)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'no control characters or lone surrogates')
  .refine((name) => name === name.trim(), 'no spaces at the ends')

/** A name from a radio in a text for people: no line breaks, no direction marks. */
export function cleanText(text: string, most: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .replaceAll(/\s+/gu, ' ')
    .trim()
  const letters = Array.from(plain)
  return letters.length <= most ? plain : `${letters.slice(0, most - 1).join('')}…`
}
