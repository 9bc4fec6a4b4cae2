import { ownedBy } from '../../base/owned.ts'
import type { MatchMode } from '../../../shared/automation/rules.ts'

/** Some words, and how they are searched for. */
type Match = { readonly mode: MatchMode; readonly words: readonly string[] }

/** The number of compared characters of a text: more than a packet holds. */
const MAX_CHARACTERS = 256

/**
 * Whether a text contains one of the words, in the mode of the rule. There are no regular expressions, so the time is
 * bounded.
 */
export function matches(match: Match, text: string): boolean {
  return matchesFolded(match, foldText(text))
}

/** Words of rules in folded form, cached because many rules are compared with each text. */
const folded = ownedBy((match: Match): readonly string[] => match.words.map(foldText))

/** As `matches`, for a text that is already folded. */
export function matchesFolded(match: Match, said: string): boolean {
  for (const word of folded(match)) if (isFound(match.mode, word, said)) return true
  return false
}

/** A form in which equal letters are the same, without spaces at both ends. */
export function foldText(text: string): string {
  return Array.from(text.normalize('NFKC').toLowerCase().trim()).slice(0, MAX_CHARACTERS).join('')
}

function isFound(mode: MatchMode, word: string, said: string): boolean {
  switch (mode) {
    case 'exact':
      return said === word
    case 'prefix':
      return said.startsWith(word) && !isInsideWord(said, word.length)
    case 'word':
      return (
        said.includes(word) &&
        positionsOf(word, said).some((at) => !isInsideWord(said, at) && !isInsideWord(said, at + word.length))
      )
    case 'contains':
      return said.includes(word)
    case 'wildcard':
      return matchesWildcards(Array.from(word), Array.from(said))
    default:
      return mode satisfies never
  }
}

function positionsOf(word: string, said: string): number[] {
  const positions: number[] = []
  for (let at = said.indexOf(word); at !== -1; at = said.indexOf(word, at + 1)) positions.push(at)
  return positions
}

/** Whether there are letters or digits on both sides of a position. */
function isInsideWord(said: string, at: number): boolean {
  return /[\p{L}\p{N}\p{M}_]$/u.test(said.slice(0, at)) && /^[\p{L}\p{N}\p{M}_]/u.test(said.slice(at))
}

/**
 * Whether the whole text matches the pattern, in which `*` stands for any characters and `?` for one. It only ever goes
 * back to the latest `*`, so the number of steps is at most the product of both lengths.
 * Decision: docs/decisions/short-decisions.md#answering-rules-use-words-and-wildcards-not-regular-expressions
 */
export function matchesWildcards(pattern: readonly string[], text: readonly string[]): boolean {
  let p = 0
  let star = -1
  let resumeAt = 0
  for (let t = 0; t < text.length;) {
    const wanted = pattern[p]
    if (wanted === '*') {
      star = p
      resumeAt = t
      p += 1
    } else if (wanted !== undefined && (wanted === '?' || wanted === text[t])) {
      p += 1
      t += 1
    } else if (star !== -1) {
      p = star + 1
      resumeAt += 1
      t = resumeAt
    } else return false
  }
  while (pattern[p] === '*') p += 1
  return p === pattern.length
}
