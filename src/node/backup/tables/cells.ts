import { quoted } from './tables.ts'

/** Values of SQLite as better-sqlite3 binds them. Numbers are reals: an integer column converts them to integers. */
export type Cell = string | number | bigint | Uint8Array | null

const MAX_EXACT = Number.MAX_SAFE_INTEGER

/**
 * SQL that makes the JSON array of a row. An integer beyond 2^53 becomes `{"$int": "…"}`, a blob `{"$base64": "…"}`
 * (needs the function `to_base64`). SQLite writes reals with a point and 17 digits, infinity as 9.0e+999.
 */
export function rowJson(columns: readonly { readonly name: string; readonly type: string }[]): string {
  return `json_array(${columns.map(({ name, type }) => cellJson(quoted(name), type)).join(', ')})`
}

function cellJson(cell: string, type: string): string {
  const marked = `json_object('$int', cast(${cell} as text))`
  const blob = `when 'blob' then json_object('$base64', to_base64(${cell}))`
  // Without an affinity, the column does not distinguish 5 from 5.0.
  if (hasNoAffinity(type)) return `case typeof(${cell}) when 'integer' then ${marked} ${blob} else ${cell} end`
  // Nearly every cell is null or a number within these bounds, and comparing is twice as fast as typeof. It works
  // because SQLite sorts numbers before texts and blobs.
  const exact = `${cell} between -${MAX_EXACT} and ${MAX_EXACT} or ${cell} is null`
  return `case when ${exact} then ${cell}
    else case typeof(${cell}) when 'integer' then ${marked} ${blob} else ${cell} end end`
}

// sqlite.org/datatype3.html, section 3.1; ANY belongs to STRICT tables.
function hasNoAffinity(type: string): boolean {
  return type === '' || /^any$/i.test(type) || (/blob/i.test(type) && !/int|char|clob|text/i.test(type))
}

/** A cell as JSON.parse returns it; `undefined` for values that no backup contains. */
export function decodeCell(value: unknown): Cell | undefined {
  if (typeof value === 'string' || typeof value === 'number' || value === null) return value
  if (typeof value !== 'object') return undefined
  const [entry, ...more] = Object.entries(value)
  if (entry === undefined || more.length > 0 || typeof entry[1] !== 'string') return undefined
  const [mark, text] = entry
  if (mark === '$int') return decodeInteger(text)
  return mark === '$base64' ? decodeBlob(text) : undefined
}

function decodeInteger(text: string): bigint | undefined {
  if (!/^-?\d{1,19}$/.test(text)) return undefined
  const value = BigInt(text)
  return BigInt.asIntN(64, value) === value ? value : undefined
}

function decodeBlob(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}
