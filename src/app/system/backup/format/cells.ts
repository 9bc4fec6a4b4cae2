import { bytesOf } from '../../../base/base64.ts'
import { toBase64 } from '../../../base/crypto.ts'
import { quoted } from './tables.ts'

/** Values of SQLite as better-sqlite3 binds them. Numbers are reals: an integer column converts them to integers. */
export type Cell = string | number | bigint | Uint8Array | null

const MAX_EXACT = Number.MAX_SAFE_INTEGER

type Columns = readonly { readonly name: string; readonly type: string }[]

/**
 * SQL that makes the JSON array of a row. An integer beyond 2^53 becomes `{"$int": "…"}`, a blob `{"$base64": "…"}`
 * (needs the function `to_base64`). SQLite writes reals with a point and 17 digits, infinity as 9.0e+999.
 */
export function rowJson(columns: Columns): string {
  return arrayOf(columns, '', toBase64Cell)
}

/**
 * The same for D1, whose functions take at most 32 values, and which has none for base64: blobs are `{"$hex": "…"}`.
 * `row`: which one in a trigger, `old` or `new`.
 */
export function narrowRowJson(columns: Columns, row?: 'old' | 'new'): string {
  const arrays: string[] = []
  for (let at = 0; at < columns.length; at += 32) {
    arrays.push(arrayOf(columns.slice(at, at + 32), row === undefined ? '' : `${row}.`, toHexCell))
  }
  // A value ends with no bracket of an array, nor begins with one.
  const last = arrays.length - 1
  return arrays
    .map((array, i) => (i < last ? `rtrim(${array}, ']')` : array))
    .map((array, i) => (i > 0 ? `ltrim(${array}, '[')` : array))
    .join(" || ',' || ")
}

type BlobJson = (cell: string) => string

const toBase64Cell: BlobJson = (cell) => `json_object('$base64', to_base64(${cell}))`
const toHexCell: BlobJson = (cell) => `json_object('$hex', hex(${cell}))`

const arrayOf = (columns: Columns, row: string, blob: BlobJson) =>
  `json_array(${columns.map(({ name, type }) => cellJson(row + quoted(name), type, blob)).join(', ')})`

function cellJson(cell: string, type: string, blobJson: BlobJson): string {
  const marked = `json_object('$int', cast(${cell} as text))`
  const blob = `when 'blob' then ${blobJson(cell)}`
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
  const bytes = text === '' ? new Uint8Array() : bytesOf(text)
  return bytes !== null && toBase64(bytes) === text ? bytes : undefined
}
