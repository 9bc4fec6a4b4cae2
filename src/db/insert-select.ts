import { type Column, getTableColumns, is, type Placeholder, SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Db } from './store.ts'

/**
 * A value for each column, by its name in the schema: as in `values(…)` of Drizzle, or as SQL. A column with a default,
 * or that may be null, can be left out.
 */
export type NamedValues<Table extends SQLiteTable> = {
  readonly [Name in keyof Table['$inferInsert']]: Table['$inferInsert'][Name] | SQL | Placeholder
}

/**
 * `insert into … select <values> <rest>`: `rest` is the `from` and `where` of the select, and may end with `on
 * conflict`, before which SQLite needs a `where`.
 */
export function insertSelect<Table extends SQLiteTable>(
  db: Pick<Db, 'insert'>,
  table: Table,
  values: NamedValues<Table>,
  rest: SQL,
) {
  const given: Readonly<Record<string, unknown>> = values
  const selected = Object.entries(getTableColumns(table)).map(([name, column]) => asSql(given[name], column))
  return db.insert(table).select(sql`select ${sql.join(selected, sql`, `)} ${rest}`)
}

function asSql(value: unknown, column: Column): SQL {
  const stored = value === undefined ? (column.default ?? null) : value
  return is(stored, SQL) ? stored : sql`${sql.param(stored, column)}`
}
