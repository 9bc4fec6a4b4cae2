import { backupTables, quoted } from '../../../src/app/system/backup/format/tables.ts'

/** The rows of each table of a backup, as texts. */
export type Rows = Record<string, string[]>

/** A select for each table of a backup, by table. D1's functions take at most 32 values. */
export const SELECTS: Readonly<Record<string, string>> = Object.fromEntries(
  backupTables().map(({ name, columns }) => [
    name,
    `select json_array(${columns.slice(0, 32).map(quoted).join(', ')}) as a,
      json_array(${columns.slice(32, 64).map(quoted).join(', ')}) as b,
      json_array(${columns.slice(64).map(quoted).join(', ')}) as c from ${quoted(name)}`,
  ]),
)

/** What a database answers to `SELECTS`. */
export async function rowsBy(read: (sql: string) => Promise<readonly unknown[]> | readonly unknown[]): Promise<Rows> {
  const rows: Rows = {}
  for (const [name, sql] of Object.entries(SELECTS)) rows[name] = textsOf(await read(sql))
  return rows
}

export const textsOf = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted()

/** Without what a restore changes on purpose: sessions of users end, and an entry records it. */
export function comparable(rows: Rows) {
  const { users = [], audit_log: log = [] } = rows
  const kept = { users: users.length, audit_log: log.filter((entry) => !entry.includes('system_restored')) }
  return { ...rows, ...kept, audit_chain: null }
}
