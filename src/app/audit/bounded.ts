/** Characters of one value in the details of an entry. */
const MAX_VALUE = 500
/** Bytes of the details of an entry, as JSON in UTF-8. */
const MAX_DETAILS = 8192

/**
 * Characters of the largest values, if all values of `MAX_VALUE` are too large together. The first number with which
 * they fit is used.
 */
const FEWER = [MAX_VALUE, 50, 0]

type Json = Record<string, unknown>

/**
 * Details as JSON of at most `MAX_DETAILS` bytes, because the log keeps them forever. A text that is too long ends
 * with `… (cut, N characters)`, where N is its original length. If that is not enough, the largest fields become the
 * beginning of their JSON, cut in the same way.
 */
export function boundedJson(details: Json): string {
  const shown = mapFields(details, (value) => mapTexts(value, (text) => cut(text, MAX_VALUE)))
  return JSON.stringify(FEWER.reduce((shorter, most) => shorten(details, shorter, most), shown))
}

/**
 * Shortens the largest fields of `shown`, and those of `before` and `after` one by one, until the details are small
 * enough.
 */
function shorten(details: Json, shown: Json, most: number): Json {
  let size = bytesOf(shown)
  if (size <= MAX_DETAILS) return shown
  const fields = Object.entries(shown).flatMap(([name, value]) =>
    isRecord(value) ? Object.keys(value).map((inner) => [name, inner]) : [[name]],
  )
  const sized = fields.map((path) => ({ path, bytes: bytesOf(read(shown, path)) }))
  let shorter = shown
  for (const { path, bytes } of sized.toSorted((a, b) => b.bytes - a.bytes)) {
    if (size <= MAX_DETAILS) break
    const value = read(details, path)
    const short = cut(typeof value === 'string' ? value : JSON.stringify(value), most)
    if (bytesOf(short) >= bytes) continue
    shorter = replace(shorter, path, short)
    size += bytesOf(short) - bytes
  }
  return shorter
}

function read(details: Json, [name = '', inner]: readonly string[]): unknown {
  const value = details[name]
  return inner !== undefined && isRecord(value) ? value[inner] : value
}

function replace(details: Json, [name = '', inner]: readonly string[], by: string): Json {
  const value = details[name]
  return { ...details, [name]: inner !== undefined && isRecord(value) ? { ...value, [inner]: by } : by }
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Never cuts between the two halves of a surrogate pair.
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most
  return `${text.slice(0, end)}… (cut, ${text.length} characters)`
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item: unknown) => mapTexts(item, change))
  if (!isRecord(value)) return value
  return mapFields(value, (inner) => mapTexts(inner, change))
}

function mapFields(json: Json, change: (value: unknown) => unknown): Json {
  return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, change(value)]))
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The length of its JSON. */
function bytesOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value) ?? '').length
}
