import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { JSON_COLUMNS } from '../../../../db/json-columns.ts'
import * as schema from '../../../../db/schema.ts'
import { MAX_ID } from './manifest.ts'
import type { Cell } from './cells.ts'

/** The maximum UTF-16 units of a text. The service accepts no body of more than a megabyte. */
const MAX_TEXT = 4 * 1024 * 1024
/** The range of a `Date`, in milliseconds. */
const MAX_TIME = 8_640_000_000_000_000

/** Returns the error in a column's value; null: none. */
export type ColumnRule = (cell: Cell) => string | null

/** By table and column. */
export type Rules = ReadonlyMap<string, ReadonlyMap<string, ColumnRule>>

/** A column as the database declares it. */
export type Declared = {
  readonly table: string
  readonly column: string
  readonly type: string
  readonly isNeeded: 0 | 1
  /** 1: an integer that is the row's own id. */
  readonly isId: 0 | 1
}

/** The permitted values of columns: by their declared types, and by this version's rules for the known ones. */
export function rulesOf(columns: readonly Declared[]): Rules {
  const known = knownColumns()
  const rules = new Map<string, Map<string, ColumnRule>>()
  for (const declared of columns) {
    const { table, column } = declared
    const ofTable = rules.get(table) ?? new Map<string, ColumnRule>()
    rules.set(table, ofTable.set(column, makeRule(declared, known.get(`${table}.${column}`))))
  }
  return rules
}

/** SQL that lists columns as `Declared`. `tables`: a select of the names of the tables. */
export function declaredColumns(tables: string): string {
  return `select t.name as "table", c.name as "column", upper(c.type) as type, c."notnull" as isNeeded,
      c.pk = 1 and upper(c.type) = 'INTEGER'
        and (select count(*) from pragma_table_info(t.name) where pk > 0) = 1 as isId
    from (${tables}) t, pragma_table_info(t.name) c`
}

type Known = { readonly isFlag: boolean; readonly values: ReadonlySet<unknown> | null }

// A migration that removes a value from an enumeration must keep it here: older backups are read before it runs.
function knownColumns(): ReadonlyMap<string, Known> {
  const tables: unknown[] = Object.values(schema)
  const columns = tables
    .filter((value) => is(value, SQLiteTable))
    .flatMap((table) => {
      const { name, columns } = getTableConfig(table)
      return columns.map((column) => [`${name}.${column.name}`, column] as const)
    })
  return new Map(
    columns.map(([name, { dataType, enumValues }]) => {
      const values = enumValues !== undefined && enumValues.length > 0 ? new Set<unknown>(enumValues) : null
      return [name, { isFlag: dataType === 'boolean', values }]
    }),
  )
}

function makeRule(declared: Declared, known: Known | undefined): ColumnRule {
  const rule = ruleOfType(declared, known)
  const isNeeded = declared.isNeeded === 1
  return (cell) => (cell === null ? (isNeeded ? 'is null, but must not be' : null) : rule(cell))
}

function ruleOfType({ table, column, type, isId }: Declared, known: Known | undefined): ColumnRule {
  switch (type) {
    case 'INTEGER':
      if (known?.isFlag === true) return checkFlag
      if (isId === 1) return checkRange(MAX_ID)
      return isTime(column) ? checkRange(MAX_TIME) : checkInteger
    case 'REAL':
      return (cell) => (typeof cell === 'number' ? null : `contains ${kindOf(cell)}, not a number`)
    case 'TEXT':
      return ruleOfText(JSON_COLUMNS.has(`${table}.${column}`), known?.values ?? null)
    default:
      return () => null
  }
}

function isTime(column: string): boolean {
  return /_(?:at|time|heard)$|^(?:t|last_t|timestamp|since)$/.test(column)
}

function checkInteger(cell: Cell): string | null {
  if (typeof cell === 'bigint' || Number.isSafeInteger(cell)) return null
  return `contains ${kindOf(cell)}, not an integer`
}

function checkRange(most: number): ColumnRule {
  return (cell) => {
    const problem = checkInteger(cell)
    if (problem !== null) return problem
    return typeof cell === 'number' && cell >= -most && cell <= most ? null : 'contains an integer that is out of range'
  }
}

function checkFlag(cell: Cell): string | null {
  return cell === 0 || cell === 1 ? null : `contains ${kindOf(cell)}, not 0 or 1`
}

function ruleOfText(isJson: boolean, values: ReadonlySet<unknown> | null): ColumnRule {
  return (cell) => {
    if (typeof cell !== 'string') return `contains ${kindOf(cell)}, not a text`
    if (cell.length > MAX_TEXT) return `contains a text of ${cell.length} characters, more than ${MAX_TEXT}`
    if (!cell.isWellFormed()) return 'contains a text that is not valid Unicode'
    if (values !== null && !values.has(cell)) return 'contains a text that is not a permitted value'
    return isJson && !isJsonText(cell) ? 'contains a text that is not JSON' : null
  }
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

// Describes the value without showing it, because it may be a hash and the message goes to the log.
function kindOf(cell: Cell): string {
  if (typeof cell === 'string') return 'a text'
  if (typeof cell === 'bigint') return 'an integer'
  if (typeof cell === 'number') return Number.isSafeInteger(cell) ? 'an integer' : 'a real number'
  return cell === null ? 'nothing' : 'a blob'
}
