import { sql } from 'drizzle-orm'
import { narrowRowJson } from '../../app/system/backup/format/cells.ts'
import { quoted } from '../../app/system/backup/format/tables.ts'
import { fromHex, toBase64 } from '../../app/base/crypto.ts'
import { built, type Db, type Statement } from '../../db/store.ts'
import type { EdgeTable } from './tables.ts'

// D1 has no long reads, so while a backup is made, triggers keep how rows were at its moment.
// Decision: docs/decisions/backups-by-before-images.md

/** Columns of a key that `backup_before` has room for. */
const KEYS = ['k1', 'k2', 'k3', 'k4'] as const

/** The names of the triggers begin with it. */
const TRIGGERS = 'backup_of_'

/** A text of one key of a row: its values as texts. */
export type Cursor = readonly string[]

export type Slice = {
  /** Rows as lines of JSON. */
  readonly lines: readonly string[]
  /** Of the last row. */
  readonly cursor: Cursor | null
}

/** Columns of the key, as SQL without their affinities: with them SQLite would not look into an index of other columns. */
const keyOf = ({ key }: EdgeTable, row: string): string[] =>
  (key ?? [{ name: 'rowid' }]).map(({ name }) => (name === 'rowid' ? `+${row}.rowid` : `+${row}.${quoted(name)}`))

const text = (value: string) => `'${value.replaceAll("'", "''")}'`

const isNoted = (table: EdgeTable, row: string) =>
  `exists (select 1 from backup_before b where b.tbl = ${text(table.name)}${keyOf(table, row)
    .map((key, i) => ` and b.${KEYS[i]} = ${key}`)
    .join('')})`

/** Notes how a row was, or that there was none, unless that is noted already. No conflict clause: the outer one would count. */
const note = (table: EdgeTable, row: 'old' | 'new', json: string, condition = '') => {
  const keys = keyOf(table, row)
  const all = KEYS.map((_, i) => keys[i] ?? '0').join(', ')
  return `insert into backup_before (tbl, k1, k2, k3, k4, row) select ${text(table.name)}, ${all}, ${json}
    where not ${isNoted(table, row)}${condition};`
}

/** Whether a row may be one of the moment: new ones of a table with rowids have higher ones, or take one that was noted. */
const mayBeOld = (table: EdgeTable, row: 'old' | 'new') =>
  table.key === null ? `${row}.rowid <= (select most from backup_bounds where tbl = ${text(table.name)})` : 'true'

const triggerName = ({ name }: EdgeTable, event: string) => quoted(`${TRIGGERS}${name}_${event}`)

function triggersOf(table: EdgeTable): string[] {
  const on = quoted(table.name)
  const before = note(table, 'old', narrowRowJson(table.typed, 'old'))
  const [isOld, isNew] = [mayBeOld(table, 'old'), mayBeOld(table, 'new')]
  // Nothing was at a new key of a row, unless another row has it, which then keeps its own.
  const names = (table.key ?? [{ name: 'rowid' }]).map(({ name }) => (name === 'rowid' ? name : quoted(name)))
  const same = keyOf(table, 'new').map((key, i) => `x.${names[i]} = ${key}`)
  const isFree = ` and not exists (select 1 from ${on} x where ${same.join(' and ')}) and ${isNew}`
  return [
    `create trigger ${triggerName(table, 'inserted')} after insert on ${on} when ${isNew}
      begin ${note(table, 'new', 'null')} end`,
    // Before the change: another trigger after it may change the row once more.
    `create trigger ${triggerName(table, 'updated')} before update on ${on}
      begin ${note(table, 'old', narrowRowJson(table.typed, 'old'), ` and ${isOld}`)}
      ${note(table, 'new', 'null', isFree)} end`,
    `create trigger ${triggerName(table, 'deleted')} before delete on ${on} when ${isOld} begin ${before} end`,
  ]
}

/** The statements that make this moment the one of a backup. They fail if there is such a moment already. */
export function holdMoment(db: Db, tables: readonly EdgeTable[]): Statement[] {
  const bounds = tables
    .filter(({ key }) => key === null)
    .map(
      ({ name }) =>
        `(${text(name)}, coalesce((select max(rowid) from ${quoted(name)}), 0), (select seq from sqlite_sequence where name = ${text(name)}))`,
    )
  return [
    'create table backup_before (tbl text not null, k1, k2, k3, k4, row text, primary key (tbl, k1, k2, k3, k4)) without rowid',
    'create table backup_bounds (tbl text primary key, most integer not null, sequence integer)',
    `insert into backup_bounds (tbl, most, sequence) values ${bounds.join(', ')}`,
    ...tables.flatMap(triggersOf),
  ].map((each) => built(db, sql.raw(each)))
}

/** The statements after which changes of these tables are no longer noted. */
export function stopNoting(db: Db, tables: readonly EdgeTable[]): Statement[] {
  return tables
    .flatMap((table) => ['inserted', 'updated', 'deleted'].map((event) => triggerName(table, event)))
    .map((name) => built(db, sql.raw(`drop trigger if exists ${name}`)))
}

/** The statements that end the moment. No trigger may be left, whatever its table is called now: it would fail each change. */
export async function forgetMoment(db: Db): Promise<Statement[]> {
  const found = await db.all<{ name: string }>(
    sql`select name from sqlite_master where type = 'trigger' and substr(name, 1, ${TRIGGERS.length}) = ${TRIGGERS}`,
  )
  return [
    ...found.map(({ name }) => `drop trigger ${quoted(name)}`),
    'drop table if exists backup_before',
    'drop table if exists backup_bounds',
  ].map((each) => built(db, sql.raw(each)))
}

/** The counters of AUTOINCREMENT at the moment, by table. */
export async function readSequences(db: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await db.all<{ name: string; sequence: number }>(
    sql`select tbl as name, sequence from backup_bounds where sequence is not null`,
  )
  return new Map(rows.map(({ name, sequence }) => [name, sequence]))
}

/** The next rows of a table as they were at the moment, in the order of its key. Fewer than `limit`: there are no more. */
export async function readSlice(db: Db, table: EdgeTable, cursor: Cursor | null, limit: number): Promise<Slice> {
  const keys = table.key ?? [{ name: 'rowid', type: 'INTEGER' }]
  const bound = sql.join(
    keys.map(({ type }, i) => (/INT/.test(type) ? sql`cast(${cursor?.[i]} as integer)` : sql`${cursor?.[i]}`)),
    sql`, `,
  )
  const names = keys.map(({ name }) => (name === 'rowid' ? 'x.rowid' : `x.${quoted(name)}`))
  const noted = KEYS.slice(0, keys.length)
  const after = (columns: readonly string[]) =>
    cursor === null ? sql`true` : sql`(${sql.raw(columns.join(', '))}) > (${bound})`
  const isBounded =
    table.key === null ? ` and x.rowid <= (select most from backup_bounds where tbl = ${text(table.name)})` : ''
  const query = sql`select line, ${sql.raw(noted.map((name) => `cast(${name} as text)`).join(', '))} from (
      select * from (select ${sql.raw(`${names.map((name, i) => `${name} as ${KEYS[i]}`).join(', ')},
        ${narrowRowJson(table.typed)} as line from ${quoted(table.name)} x`)}
        where ${after(names)}${sql.raw(`${isBounded} and not ${isNoted(table, 'x')} order by ${names.join(', ')}`)} limit ${limit})
      union all
      select * from (select ${sql.raw(`${noted.join(', ')}, row as line from backup_before
        where tbl = ${text(table.name)} and row is not null`)} and ${after(noted)}
        order by ${sql.raw(noted.join(', '))} limit ${limit}))
    order by ${sql.raw(noted.join(', '))} limit ${limit}`
  const rows = await db.values<[string, ...string[]]>(query)
  return { lines: rows.map(([line]) => withBase64(line)), cursor: rows.at(-1)?.slice(1) ?? null }
}

/** No text looks like the mark, because JSON escapes its quotation marks there. */
function withBase64(line: string): string {
  return line.includes('{"$hex":"')
    ? line.replaceAll(/\{"\$hex":"([0-9A-F]*)"\}/g, (_, hex: string) => `{"$base64":"${toBase64(fromHex(hex))}"}`)
    : line
}
