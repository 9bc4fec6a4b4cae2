import { getTableColumns, sql, type SQL } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { bind, type Db, type Statement } from './store.ts'

/** A field of the current row, as SQL. */
export function field(name: string): SQL {
  return sql.raw(`r.j ->> '${name}'`)
}

/** For `from`: no rows of nodes that were deleted meanwhile. `name`: the field with a node's number. */
export const ofKnown = (name: string): SQL => sql`cross join nodes on nodes.node_num = ${field(name)}`

/**
 * A list of names as SQL, for `in (…)`. Unlike parameters, literals let SQLite choose a partial index. Only for names
 * from the code.
 */
export function literals(names: readonly string[]): SQL {
  return sql.raw(names.map((name) => `'${name}'`).join(', '))
}

/**
 * Prepares an insert of many rows whose only parameter is a JSON array of objects: one statement for a whole batch,
 * which D1 counts as one, and about as fast in SQLite as rows bound one by one. Rows are inserted in the order of the
 * array. `values` has SQL for each column of the table, by its name in the schema, mostly a `field`; `from` joins more
 * tables; `more` are further common table expressions, which may read the rows as `r`. `Values` are the parameters of
 * these besides the rows.
 */
export function prepareJsonInsert<Values extends Readonly<Record<string, unknown>> | null = null>(
  db: Db,
  table: SQLiteTable,
  {
    values,
    from = sql``,
    more = sql``,
    onConflict,
  }: { values: Readonly<Record<string, SQL>>; from?: SQL; more?: SQL; onConflict: SQL },
): (rows: readonly object[], ...values: Values extends null ? [] : [Values]) => Statement {
  const columns = Object.keys(getTableColumns(table)).map((name) => {
    const value = values[name]
    if (value === undefined) throw new Error(`no value for column ${name}`)
    return value
  })
  // As binary JSON (since SQLite 3.51) the array is parsed only once, instead of once for each field of each row.
  const prepared = db
    .insert(table)
    .select(
      sql`with r as materialized (select value as j from jsonb_each(${sql.placeholder('rows')})) ${more}
        select ${sql.join(columns, sql`, `)} from r ${from} where true ${onConflict}`,
    )
    .prepare()
  return (rows, values = {}) => bind(prepared, { ...values, rows: JSON.stringify(rows) })
}
