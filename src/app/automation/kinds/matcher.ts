import type { MatchMode } from '../../../shared/automation/rule-kinds.ts'

/** Some words, and how they are looked for. */
type Match = { readonly mode: MatchMode; readonly words: readonly string[] }

/** Characters of a text that are compared: more than a packet holds. */
const MAX_CHARACTERS = 256

/** Whether a text contains one of the words, in the mode of the rule. No regular expressions: time is bounded. */
export function matches(match: Match, text: string): boolean {
  return matchesFolded(match, foldText(text))
}

/** Words of rules, folded once: many rules are held against each text. */
const folded = new WeakMap<Match, readonly string[]>()

/** As `matches`, of a text that was folded before. */
export function matchesFolded(match: Match, said: string): boolean {
  let words = folded.get(match)
  if (words === undefined) {
    words = match.words.map(foldText)
    folded.set(match, words)
  }
  for (const word of words) if (isFound(match.mode, word, said)) return true
  return false
}

/** Of equal letters the same ones, without spaces at the ends. */
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
 * Whether `*` (any characters) and `?` (one) make the pattern the whole text. It goes back to the latest `*` alone, so
 * the steps are at most the product of both lengths.
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
