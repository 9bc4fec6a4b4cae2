import { sql } from 'drizzle-orm'
import { backupTables, type TableShape } from '../../app/system/backup/format/tables.ts'
import type { Db } from '../../db/store.ts'

type Column = { readonly name: string; readonly type: string }

/** A table with what its rows are found by: the columns of its key, or null for its rowid. */
export type EdgeTable = TableShape & { readonly typed: readonly Column[]; readonly key: readonly Column[] | null }

type Found = { readonly table: string; readonly wr: number } & Column & { readonly pk: number }

/**
 * The tables of a backup as the database declares them. Those without a rowid first: while they wait, each new row of theirs
 * is noted. Throws if the database lacks a column.
 */
export async function readTables(db: Db): Promise<EdgeTable[]> {
  // By name, because D1 refuses a look at its own tables.
  const names = JSON.stringify(backupTables().map(({ name }) => name))
  const found = await db.all<Found>(
    sql`select t.name as "table", t.wr as wr, c.name as name, upper(c.type) as type, c.pk as pk
      from json_each(${names}) n join pragma_table_list t on t.schema = 'main' and t.name = n.value,
        pragma_table_info(n.value) c`,
  )
  const byTable = Map.groupBy(found, ({ table }) => table)
  const tables = backupTables().map(({ name, columns }): EdgeTable => {
    const declared = byTable.get(name) ?? []
    const typed = columns.map((column) => {
      const type = declared.find((one) => one.name === column)?.type
      if (type === undefined) throw new Error(`the database has no column ${name}.${column}`)
      return { name: column, type }
    })
    const key = declared.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk)
    if (columns.includes('rowid')) throw new Error(`${name} hides its rowid`)
    return { name, columns, typed, key: declared[0]?.wr === 1 ? key : null }
  })
  return [...tables.filter(({ key }) => key !== null), ...tables.filter(({ key }) => key === null)]
}
