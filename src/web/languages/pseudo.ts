/**
 * Languages for tests of the layout: English with accents and 40 % more letters, and English from right to left. What is
 * plain on a page drawn in one of them was never translated.
 */
const ACCENTS: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from('aceghilnosuyzACEGILNOSUYZ', (letter, at) => [letter, 'åçéĝĥíļñöšûýžÅÇÉĜÍĻÑÖŠÛÝŽ'.charAt(at)]),
)
const accented = (text: string) => text.replaceAll(/[a-zA-Z]/g, (letter) => ACCENTS[letter] ?? letter)
/** Every second vowel again, until the text is 40 % longer. */
function stretched(text: string): string {
  let missing = Math.ceil(text.length * 0.4)
  return (
    text.replaceAll(/[aeiou]/gi, (vowel) => (missing > 0 ? (missing--, vowel + vowel) : vowel)) + '·'.repeat(missing)
  )
}

const RIGHT_TO_LEFT = '\u202b'
const END = '\u202c'

export const lengthen = (texts: object) => change(texts, (text) => (text === '' ? '' : accented(stretched(text))))
export const turn = (texts: object) =>
  change(texts, (text) => (text === '' ? '' : `${RIGHT_TO_LEFT}${accented(text)}${END}`))

function change(value: unknown, to: (text: string) => string): unknown {
  if (typeof value === 'string') return to(value)
  if (typeof value === 'function')
    return (...values: readonly unknown[]) => change(Reflect.apply(value, null, values), to)
  if (Array.isArray(value)) return value.map((each) => change(each, to))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, change(each, to)]))
}
