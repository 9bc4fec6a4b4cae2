import type Database from 'better-sqlite3'

/** The ordinary tables of a database and their columns, without SQLite's, the migrator's and generated ones. */
export function tablesOf(database: Database.Database): ReadonlyMap<string, readonly string[]> {
  const rows = database
    .prepare<[], { name: string; column: string }>(
      `select t.name, c.name as "column" from pragma_table_list t, pragma_table_xinfo(t.name) c
        where t.schema = 'main' and t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\'
          and t.name <> '__drizzle_migrations' and c.hidden = 0 order by t.name, c.cid`,
    )
    .all()
  const tables = new Map<string, string[]>()
  for (const { name, column } of rows) tables.set(name, [...(tables.get(name) ?? []), column])
  return tables
}
