import { type Cell, decodeCell } from './cells.ts'
import type { ColumnRule } from './column-rules.ts'
import { BackupDamage } from './damage.ts'
import type { ManifestTable } from './manifest.ts'
import { tableHead } from './tables.ts'

const END_LINE = ']}'
const MAX_LINE = 32 * 1024 * 1024
/** The limit for one chunk: a line of maximum length could contain enough of these to fill the memory. */
const MAX_TOKENS = 256 * 1024
/** Of hashes that come from elsewhere: each attempt at a password takes some seconds at most. */
export const MAX_BCRYPT_COST = 14

/** Columns without a rule may contain anything. */
export type TableRules = ReadonlyMap<string, ColumnRule>

type Damage = (what: string, cause?: unknown) => BackupDamage

/**
 * Takes a table's file apart, piece by piece: its head, lines of rows, its end. Rows are passed on before all of the file is
 * known to be sound. Throws BackupDamage.
 */
export function rowReader(table: ManifestTable, rules: TableRules, onRows: (rows: Cell[][]) => void) {
  const damage: Damage = (what, cause) => new BackupDamage(`${table.file} ${what}`, { cause })
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const head = tableHead(table)
  const check = cellCheck(table, rules)
  let rest = ''
  let rows = 0
  let isBegun = false
  let hasLastRow = false
  let isEnded = false

  const takeLines = (block: string) => {
    if (isEnded) throw damage('continues after its end')
    isEnded = block === END_LINE || block.endsWith(`\n${END_LINE}`)
    const lines = isEnded ? block.slice(0, -END_LINE.length - 1) : block
    if (lines === '') return
    if (hasLastRow) throw damage('lacks a comma between rows')
    hasLastRow = !lines.endsWith(',')
    const values = parseRows(hasLastRow ? lines : lines.slice(0, -1), damage)
    onRows(values.map((value, i) => check(value, rows + i + 1)))
    rows += values.length
  }
  return {
    feed: (bytes: Uint8Array) => {
      const piece = decode(decoder, bytes, damage)
      let cut = piece.includes('\n') ? rest.length + piece.lastIndexOf('\n') : -1
      rest += piece
      if (!isBegun && rest.length >= head.length) {
        if (!rest.startsWith(head)) throw damage('does not begin as the manifest says')
        rest = rest.slice(head.length)
        cut -= head.length
        isBegun = true
      }
      if (isBegun && cut >= 0) {
        takeLines(rest.slice(0, cut))
        rest = rest.slice(cut + 1)
      }
      if (rest.length > MAX_LINE) throw damage('contains a line that is too long')
    },
    end: () => {
      if (!isEnded || rest !== '' || hasLastRow !== rows > 0) throw damage('does not end as it should')
      if (rows !== table.rows) throw damage(`has ${rows} rows, the manifest says ${table.rows}`)
    },
  }
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array, damage: Damage): string {
  try {
    return decoder.decode(bytes, { stream: true })
  } catch (error) {
    throw damage('is not UTF-8', error)
  }
}

function parseRows(lines: string, damage: Damage): unknown[] {
  if (lines.length > MAX_TOKENS && countTokens(lines) > MAX_TOKENS) throw damage('contains a line with too many values')
  try {
    const rows: unknown = JSON.parse(`[${lines}]`)
    return Array.isArray(rows) ? rows : []
  } catch (error) {
    throw damage('contains a line that is not JSON', error)
  }
}

/** Brackets, colons and commas of JSON, outside of strings. */
function countTokens(json: string): number {
  let tokens = 0
  for (let at = 0; at < json.length; at++) {
    const character = json[at]
    if (character === '"') at = endOfString(json, at)
    else if (character === ',' || character === '[' || character === '{' || character === ':') tokens++
  }
  return tokens
}

function endOfString(json: string, begin: number): number {
  for (let at = begin + 1; at < json.length; at++) {
    if (json[at] === '\\') at++
    else if (json[at] === '"') return at
  }
  return json.length
}

/** Checks a row and decodes it. */
function cellCheck(table: ManifestTable, rules: TableRules): (row: unknown, number: number) => Cell[] {
  const width = table.columns.length
  const inOrder = table.columns.map((column) => rules.get(column))
  const passwordHash = table.name === 'users' ? table.columns.indexOf('password_hash') : -1
  return (row, number) => {
    const where = `${table.file}: row ${number}`
    if (!Array.isArray(row) || row.length !== width) throw new BackupDamage(`${where} does not have ${width} values`)
    const cells = row.map((value: unknown, i): Cell => {
      const cell = decodeCell(value)
      if (cell === undefined) throw new BackupDamage(`${where} contains a value that no table can have`)
      const problem = inOrder[i]?.(cell) ?? null
      if (problem === null) return cell
      throw new BackupDamage(`table ${table.name} row ${number} column ${table.columns[i]} ${problem}`)
    })
    if (passwordHash >= 0) checkPasswordHash(cells[passwordHash], where)
    return cells
  }
}

// With a hash of a huge cost, one attempt to sign in would occupy the processor for hours.
function checkPasswordHash(hash: Cell | undefined, where: string): void {
  const cost = typeof hash === 'string' ? /^\$2[a-z]?\$(\d+)/.exec(hash)?.[1] : undefined
  if (cost !== undefined && Number(cost) > MAX_BCRYPT_COST) {
    throw new BackupDamage(`${where} contains a bcrypt hash of cost ${cost}, over ${MAX_BCRYPT_COST}`)
  }
}
