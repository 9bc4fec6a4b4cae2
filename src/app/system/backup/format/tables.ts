import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import * as schema from '../../../../db/schema.ts'

/** A table of a backup. */
export type TableShape = { readonly name: string; readonly columns: readonly string[] }

/** The text before the first row of a table's file; the last line is `]}`. */
export function tableHead({ name, columns }: TableShape): string {
  return `{"table":${JSON.stringify(name)},"columns":${JSON.stringify(columns)},"rows":[\n`
}

const EPHEMERAL: ReadonlySet<string> = new Set(schema.EPHEMERAL_TABLES)

/** Whether a table stays out of backups. */
export function isEphemeral(table: string): boolean {
  return EPHEMERAL.has(table)
}

/** The tables of a backup, by name: the whole schema except ephemeral tables. Generated columns are left out. */
export function backupTables(): TableShape[] {
  const tables: unknown[] = Object.values(schema)
  return tables
    .filter((value) => is(value, SQLiteTable))
    .map((table) => {
      const { name, columns } = getTableConfig(table)
      return { name, columns: columns.filter(({ generated }) => generated === undefined).map(({ name }) => name) }
    })
    .filter(({ name }) => !isEphemeral(name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** An identifier in SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
