// Texts as people write them: 3 to 14 words, each as frequent as its rank in a language says (Zipf).
import { createSeededRandom } from '../src/node/radio/demo/seeded-random.ts'

const WORDS = 20_000
/** The most frequent ones, of which searches ask for some. */
const COMMON =
  `the to a and of in is on you it for that at with node not this are have be up from we good was will can here signal
  radio all just now mesh out hill more there some any down home hello test thanks channel today still back battery time
  new antenna no yes see how where when what who over under near far road river house roof morning evening rain wind`.split(
    /\s+/,
  )
const [FROM, TO] = [3, 14]
/** Powers of two, so that an index is a few bits of a random number. */
const DRAWS = 2 ** 18

/** Syllables spell the rank, in an order that looks like none. */
function invented(rank: number): string {
  let left = (rank * 7919) % 1_000_000
  let word = ''
  for (let syllable = 0; syllable < 2 + (rank % 2); syllable++) {
    word += `${'bcdfghklmnprstvwzjxq'[left % 20]}${'aeiou'[Math.floor(left / 20) % 5]}`
    left = Math.floor(left / 100)
  }
  return word
}

function createDraws(): readonly string[] {
  const words = Array.from({ length: WORDS }, (_, n) => COMMON[n] ?? invented(n))
  const total = words.reduce((sum, _, n) => sum + 1 / (n + 1), 0)
  const draws: string[] = []
  let upTo = 0
  for (const [n, word] of words.entries()) {
    upTo += (DRAWS / total) * (1 / (n + 1))
    while (draws.length < upTo && draws.length < DRAWS) draws.push(word)
  }
  return draws
}

let draws: readonly string[] | undefined

/** The `n`th text, always the same. */
export function textOf(n: number): string {
  draws ??= createDraws()
  const random = createSeededRandom(n)
  const length = FROM + Math.floor(random() * (TO - FROM + 1))
  let text = ''
  for (let word = 0; word < length; word++) {
    text += `${word === 0 ? '' : ' '}${draws[Math.floor(random() * draws.length)]}`
  }
  return text
}
