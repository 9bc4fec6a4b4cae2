import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import * as z from 'zod'
import { AppError } from '../../../app/http/errors.ts'
import { parseLine, splitLines } from '../../disk/lines.ts'

const lineSchema = z.object({ t: z.string().regex(/^[a-z_]{1,64}$/), r: z.record(z.string(), z.unknown()) })
/** Tables whose columns are in camel case in Postgres and MySQL, and not in SQLite. */
const SNAKE: ReadonlySet<string> = new Set([
  'users',
  'permissions',
  'api_tokens',
  'audit_log',
  'waypoints',
  'push_subscriptions',
  'channel_database',
  'channel_database_permissions',
  'user_notification_preferences',
])
/** Columns that have another name there. */
const RENAMED: Readonly<Record<string, string>> = { 'users.authMethod': 'auth_provider' }
const KEPT_CAMEL: ReadonlySet<string> = new Set(['permissions.sourceId'])
/** A table without rows has no line, and is still one of the program's. */
const ALWAYS = ['sources', 'nodes', 'messages', 'telemetry', 'settings', 'users', 'permissions'] as const
const MAX_COLUMNS = 200
const ROWS_AT_ONCE = 5000

/**
 * Writes JSON lines `{"t": table, "r": row}` into a new SQLite database with the columns that the rows have. Throws
 * `invalid_request` with the number of a line that is none.
 */
export async function loadLines(file: string, into: string): Promise<void> {
  const { DatabaseSync: Database } = await import('node:sqlite')
  const sqlite = new Database(into)
  try {
    sqlite.exec('pragma journal_mode = off; pragma synchronous = off; begin')
    const write = createTables(sqlite)
    let number = 0
    for await (const line of splitLines(file)) {
      number++
      if (line.trim() === '') continue
      const parsed = lineSchema.safeParse(parseLine(line))
      if (!parsed.success) {
        throw new AppError('invalid_request', `${file}: line ${number} is not a row as {"t": table, "r": row}`)
      }
      write(parsed.data.t, parsed.data.r)
      if (number % ROWS_AT_ONCE === 0) sqlite.exec('commit; begin')
    }
    sqlite.exec('commit')
    for (const table of ALWAYS) sqlite.exec(`create table if not exists "${table}" ("sourceId")`)
    if (sqlite.prepare("select 1 from pragma_table_info('telemetry') where name = 'timestamp'").get() !== undefined) {
      sqlite.exec('create index idx_telemetry_timestamp on telemetry (timestamp)')
    }
  } finally {
    sqlite.close()
  }
}

function createTables(sqlite: DatabaseSync) {
  const tables = new Map<string, Set<string>>()
  const inserts = new Map<string, ReturnType<DatabaseSync['prepare']>>()
  return (table: string, row: Readonly<Record<string, unknown>>) => {
    const entries = Object.entries(row).map(([name, value]) => [columnName(table, name), sqlValue(value)] as const)
    const known = tables.get(table) ?? new Set<string>()
    for (const [name] of entries) {
      if (known.has(name)) continue
      if (known.size >= MAX_COLUMNS) throw new AppError('invalid_request', `${table} has too many columns`)
      // A time that somebody wrote as a text has its place in the order too.
      const column = name === 'timestamp' ? `"${name}" integer` : `"${name}"`
      sqlite.exec(
        known.size === 0 ? `create table "${table}" (${column})` : `alter table "${table}" add column ${column}`,
      )
      known.add(name)
    }
    tables.set(table, known)
    if (entries.length === 0) return
    const key = `${table} ${entries.map(([name]) => name).join()}`
    const insert =
      inserts.get(key) ??
      sqlite.prepare(
        `insert into "${table}" (${entries.map(([name]) => `"${name}"`).join()}) values (${entries.map(() => '?').join()})`,
      )
    inserts.set(key, insert)
    insert.run(...entries.map(([, value]) => value))
  }
}

function columnName(table: string, name: string): string {
  if (!/^\w{1,64}$/.test(name)) throw new AppError('invalid_request', `${table} has a column without a usual name`)
  const renamed = RENAMED[`${table}.${name}`]
  if (renamed !== undefined) return renamed
  if (!SNAKE.has(table) || KEPT_CAMEL.has(`${table}.${name}`)) return name
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function sqlValue(value: unknown): SQLInputValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number' || typeof value === 'string') return value
  return JSON.stringify(value)
}
