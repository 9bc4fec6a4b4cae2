import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Row } from './row.ts'

/** A database of MeshMonitor that is only read. */
export type Source = {
  /** Without its directory. */
  readonly name: string
  /** The number of the last migration. */
  readonly migration: number
  has(table: string): boolean
  hasColumn(table: string, column: string): boolean
  hasIndex(name: string): boolean
  /** The rows of a table; 0 if there is no such table. `where`: SQL without values from outside. */
  count(table: string, where?: string): number
  /**
   * The rows with these columns, null where the version that wrote it had no such column. `rest`: SQL after `from`.
   * Nothing if there is no such table.
   */
  rows(table: string, columns: readonly string[], rest?: string): Iterable<Row>
  one(sql: string, ...values: readonly (string | number)[]): Row | undefined
  /** Throws if somebody wrote to the file since it was opened. */
  checkUnchanged(): void
  close(): void
}

/** The functions of a source over an open database. */
export function readDatabase(sqlite: DatabaseSync): Omit<Source, 'name' | 'migration' | 'checkUnchanged' | 'close'> {
  const columns = new Map<string, ReadonlySet<string>>()
  const columnsOf = (table: string) => {
    const known = columns.get(table)
    if (known !== undefined) return known
    const found = sqlite.prepare('select name from pragma_table_info(?)').all(table)
    const names = new Set(found.map(({ name }) => String(name)))
    columns.set(table, names)
    return names
  }
  const has = (table: string) => columnsOf(table).size > 0
  return {
    has,
    hasColumn: (table, column) => columnsOf(table).has(column),
    hasIndex: (name) =>
      sqlite.prepare("select 1 from sqlite_master where type = 'index' and name = ?").get(name) !== undefined,
    count(table, where = 'true') {
      if (!has(table)) return 0
      return Number(sqlite.prepare(`select count(*) as n from ${quoted(table)} where ${where}`).get()?.['n'] ?? 0)
    },
    rows(table, names, rest = '') {
      if (!has(table)) return []
      const list = names.map((name) => (columnsOf(table).has(name) ? quoted(name) : `null as ${quoted(name)}`))
      return rowsOf(sqlite.prepare(`select ${list.join(', ')} from ${quoted(table)} ${rest}`), names)
    },
    one: (sql, ...values) => sqlite.prepare(sql).get(...values),
  }
}

/** Arrays, made rows here: rows that Node makes take more time, and several times the memory. */
function* rowsOf(statement: StatementSync, names: readonly string[]): Iterable<Row> {
  statement.setReturnArrays(true)
  for (const values of statement.iterate()) {
    const row: Record<string, Row[string]> = {}
    for (let i = 0; i < names.length; i++) row[names[i] ?? ''] = values[i]
    yield row
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
