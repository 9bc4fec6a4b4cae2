// The few XML answers of the protocols, whatever prefixes their names have. Nothing in them is trusted.

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/**
 * What is inside each element of this name, at most `most`. Takes linear time, whatever a server sends: each search goes
 * on where the one before ended, and the first element without an end is the last.
 */
export function elements(xml: string, name: string, most = Infinity): string[] {
  const begin = new RegExp(String.raw`<(?:[\w-]{1,40}:)?${name}(?:\s[^<>]*)?>`, 'g')
  const end = new RegExp(String.raw`</(?:[\w-]{1,40}:)?${name}\s{0,9}>`, 'g')
  const found: string[] = []
  while (found.length < most && begin.exec(xml) !== null) {
    const from = begin.lastIndex
    end.lastIndex = from
    const closing = end.exec(xml)
    if (closing === null) break
    found.push(xml.slice(from, closing.index))
    begin.lastIndex = end.lastIndex
  }
  return found
}

/** The text of the first element of this name; null: there is none. */
export function textIn(xml: string, name: string): string | null {
  const [inner] = elements(xml, name, 1)
  if (inner === undefined) return null
  return inner
    .trim()
    .replaceAll(
      /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi,
      (whole, decimal?: string, hex?: string, entity?: string) => {
        if (entity !== undefined) return ENTITIES[entity] ?? whole
        const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
        return code <= 0x10ffff ? String.fromCodePoint(code) : whole
      },
    )
}
