/**
 * How well a name fits what was typed: the lower, the better. `about`: a part of it is only in what is said about the
 * thing. With errors, it is `similar` and more.
 */
export const RANKS = { exact: 0, prefix: 1, word: 2, inside: 3, about: 4, similar: 5 } as const

/** Lower case, and without accents and marks of direction. */
export function fold(text: string): string {
  return text
    .toLowerCase()
    .normalize('NFD')
    .replaceAll(/[\p{M}\u2066-\u2069]/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll('ł', 'l')
    .trim()
}

const NO_WORD = /[^\p{L}\p{N}]+/gu

/** `Wi-Fi name` as `wi`, `fi`, `name`, `wifi`. */
function wordsOf(folded: string): readonly string[] {
  const parts = folded.split(NO_WORD)
  return [...new Set([...parts, ...typedWords(folded)])].filter((word) => word !== '')
}

function typedWords(folded: string): readonly string[] {
  return folded
    .split(/\s+/)
    .map((word) => word.replaceAll(NO_WORD, ''))
    .filter((word) => word !== '')
}

/** A name that is searched, made ready once. */
export type Searched = { readonly text: string; readonly words: readonly string[] }

export function searched(name: string): Searched {
  const text = fold(name)
  return { text, words: wordsOf(text) }
}

/** What is said about a thing, and where it is. */
export type Surroundings = { readonly about: Searched; readonly where: Searched }

/**
 * How well a name fits; null: not at all. `wanted` is folded. All its words must be in the name, in any order, or in
 * what is said about the thing; some of them may be in where it is.
 */
export function rankOf(wanted: string, name: Searched, around: Surroundings | null = null): number | null {
  const { text, words } = name
  if (text === wanted) return RANKS.exact
  if (text.startsWith(wanted)) return RANKS.prefix
  const typed = typedWords(wanted)
  if (typed.length === 0) return text.includes(wanted) ? RANKS.inside : null
  const ranks = typed.map((word) => rankOfWord(word, words))
  const rank = worstOf(ranks)
  if (rank !== null && rank < RANKS.similar) return rank
  if (text.includes(wanted)) return RANKS.inside
  return (around === null ? null : rankAround(typed, ranks, around)) ?? rank
}

/** Letters of a word that is searched beside the name. */
const MIN_AROUND = 3

/** Words that are not in the name must be there without errors, from their beginning. */
function rankAround(typed: readonly string[], ranks: readonly (number | null)[], around: Surroundings): number | null {
  const isIn = (word: string, { words }: Searched) =>
    word.length >= MIN_AROUND && words.some((each) => each.startsWith(word))
  const withAbout = typed.map((word, index) => {
    const rank = ranks[index] ?? null
    return (rank === null || rank >= RANKS.similar) && isIn(word, around.about) ? RANKS.about : rank
  })
  if (withAbout.every((rank) => rank === null)) return null
  return worstOf(withAbout.map((rank, index) => rank ?? (isIn(typed[index] ?? '', around.where) ? RANKS.about : null)))
}

function worstOf(ranks: readonly (number | null)[]): number | null {
  const found = ranks.filter((rank) => rank !== null)
  return found.length < ranks.length ? null : found.reduce((a, b) => (b > a ? b : a))
}

function rankOfWord(typed: string, words: readonly string[]): number | null {
  if (words.some((word) => word.startsWith(typed))) return RANKS.word
  if (words.some((word) => word.includes(typed))) return RANKS.inside
  return bestRank(words.map((word) => rankOfSimilar(typed, word)))
}

/** Typing errors that are forgiven in a word of so many letters. */
function errorsIn(typed: string): number {
  // A number with another digit is another number.
  if (typed.length < 4 || /\p{N}/u.test(typed)) return 0
  return typed.length < 8 ? 1 : 2
}

/** From so many letters on, the word may be longer than what was typed of it: most short words are similar to others. */
const MIN_BEGUN = 5

/** Few errors are better, and most people type the first letter right. */
function rankOfSimilar(typed: string, word: string): number | null {
  const most = errorsIn(typed)
  if (most === 0) return null
  const { whole, begun } = errorsBetween(typed, word)
  const errors = typed.length < MIN_BEGUN ? whole : Math.min(whole, begun)
  return errors > most ? null : RANKS.similar + errors / 10 + (typed[0] === word[0] ? 0 : 0.5)
}

/**
 * How many letters must be added, left out, replaced or swapped with the next to make `typed` the word, or the best of
 * its beginnings.
 */
function errorsBetween(typed: string, word: string): { whole: number; begun: number } {
  let before: readonly number[] = []
  let row: readonly number[] = Array.from({ length: word.length + 1 }, (_, index) => index)
  for (let i = 1; i <= typed.length; i++) {
    const next = [i]
    for (let j = 1; j <= word.length; j++) {
      const at = (from: readonly number[], index: number) => from[index] ?? Infinity
      const isSame = typed[i - 1] === word[j - 1]
      const isSwapped = i > 1 && j > 1 && typed[i - 1] === word[j - 2] && typed[i - 2] === word[j - 1]
      next[j] = Math.min(
        at(next, j - 1) + 1,
        at(row, j) + 1,
        at(row, j - 1) + (isSame ? 0 : 1),
        isSwapped ? at(before, j - 2) + 1 : Infinity,
      )
    }
    before = row
    row = next
  }
  return { whole: row.at(-1) ?? Infinity, begun: Math.min(...row) }
}

export type Candidate = {
  /** The same thing may have several names. */
  readonly names: readonly Searched[]
  readonly around: Surroundings | null
  /** Among equals, the higher comes first. */
  readonly weight: number
}

/** Those that fit, the best first; equals keep their order. `wanted` is folded. */
export function bestOf<T extends Candidate>(wanted: string, all: readonly T[]): readonly T[] {
  return all
    .flatMap((one) => {
      const rank = bestRank(one.names.map((name) => rankOf(wanted, name, one.around)))
      return rank === null ? [] : [{ one, rank }]
    })
    .toSorted((a, b) => a.rank - b.rank || b.one.weight - a.one.weight)
    .map(({ one }) => one)
}

function bestRank(ranks: readonly (number | null)[]): number | null {
  return ranks.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null)
}

/** Characters of a text before what was found in it. */
const LEAD = 16

/** The text from a little before the place where it contains what was typed. */
export function excerpt(text: string, wanted: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  const at = line.toLowerCase().indexOf(wanted.toLowerCase())
  if (at <= LEAD) return line
  const cut = line.lastIndexOf(' ', at - LEAD / 2) + 1
  return cut === 0 ? line : `…${line.slice(cut)}`
}
