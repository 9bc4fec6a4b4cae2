import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import { quoted } from '../../../app/system/backup/format/tables.ts'
import { latestTag } from '../../migrations.ts'
import { backupsDirectory } from '../folder/directory.ts'
import { diskFiles } from '../folder/files.ts'
import { tablesOf } from '../tables/tables-of.ts'
import { type Restored, restoreBackup, type RestoreOptions } from './restore.ts'

/** Bytes of one statement; D1 takes 100,000 (developers.cloudflare.com/d1/platform/limits). */
const STATEMENT_BYTES = 90_000
/** Characters of a value in one statement: up to six times as many bytes. */
const VALUE_CHARACTERS = 4000
const FILE_BYTES = 64 * 2 ** 20

type Value = string | number | bigint | Buffer | null

/**
 * Restores a backup as a start on Node would, beside the database, and writes what D1 needs for the same: files of SQL, to be
 * executed in the order of their names. Throws RestoreRefused. Returns the names of the files.
 */
export async function writeForD1(
  options: RestoreOptions,
  name: string,
  directory: string,
): Promise<Restored & { readonly files: string[] }> {
  makeNew(directory)
  const scratch = join(directory, '.restored')
  try {
    mkdirSync(scratch, { mode: 0o700 })
    // The directory of backups may be a link.
    symlinkSync(resolve(backupsDirectory(options.dataDir)), backupsDirectory(scratch))
    const database = join(scratch, 'mesh.db')
    const restored = await restoreBackup({ ...options, dataDir: scratch, database }, name)
    const built = new Database(database, { readonly: true })
    try {
      const files = writeFiles(directory, statementsFor(built, latestTag(options.migrations)))
      return { ...restored, files }
    } finally {
      built.close()
      rmSync(scratch, { recursive: true, force: true })
    }
  } catch (error) {
    // Some of the files would look like all.
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
}

function makeNew(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new RestoreRefused(`${directory} cannot be created: ${why}; name a directory that does not exist`)
  }
}

function writeFiles(directory: string, statements: Iterable<string>): string[] {
  const files: string[] = []
  let fd: number | null = null
  let left = 0
  for (const statement of statements) {
    const bytes = Buffer.from(`${statement};\n`)
    if (fd === null || left < bytes.length) {
      if (fd !== null) diskFiles.finish(fd)
      const file = join(directory, `${String(files.length + 1).padStart(4, '0')}.sql`)
      fd = diskFiles.create(file)
      files.push(file)
      left = FILE_BYTES
    }
    diskFiles.write(fd, bytes)
    left -= bytes.length
  }
  if (fd !== null) diskFiles.finish(fd)
  return files
}

/** What turns an empty database of this version into the built one. The mark in it is first and last. */
export function* statementsFor(built: Database.Database, tag: string): Generator<string> {
  const ordered = parentsFirst(built)
  const triggers = built
    .prepare<[], { name: string; sql: string }>("select name, sql from sqlite_schema where type = 'trigger'")
    .all()
  const isEmpty = `(select name from d1_migrations order by id desc limit 1) = '${tag}.sql'
    and not exists (select 1 from users) and not exists (select 1 from nodes)`
  // An error whose message says why.
  yield `select json_extract('{}', case when ${isEmpty} or exists (select 1 from sqlite_schema where name = 'restore_under_way')
    then '$' else 'a restore needs an empty database after the migration ${tag}' end)`
  // The worker refuses to work while this table exists.
  yield 'create table if not exists restore_under_way (begun integer)'
  for (const { name } of triggers) yield `drop trigger if exists ${quoted(name)}`
  for (const name of ordered.toReversed()) yield `delete from ${quoted(name)}`
  for (const name of textIndexesOf(built)) yield `insert into ${quoted(name)} (${quoted(name)}) values ('delete-all')`
  for (const name of ordered) yield* rowsOf(built, name)
  yield "delete from sqlite_sequence where name <> 'd1_migrations'"
  const counters = built.prepare<[], { name: string; seq: number }>('select name, seq from sqlite_sequence').all()
  for (const { name, seq } of counters)
    yield `insert into sqlite_sequence (name, seq) values (${literal(name)}, ${seq})`
  for (const { sql } of triggers) yield sql
  yield 'drop table restore_under_way'
}

/** The tables, each after those that its rows refer to. */
function parentsFirst(built: Database.Database): string[] {
  const tables = [...tablesOf(built).keys()]
  const parents = new Map(
    tables.map((name) => [
      name,
      built
        .prepare<[string], string>('select "table" from pragma_foreign_key_list(?)')
        .pluck()
        .all(name)
        .filter((parent) => parent !== name),
    ]),
  )
  const ordered: string[] = []
  while (ordered.length < tables.length) {
    const next = tables.find(
      (name) => !ordered.includes(name) && (parents.get(name) ?? []).every((parent) => ordered.includes(parent)),
    )
    if (next === undefined) throw new Error('tables refer to each other in a circle')
    ordered.push(next)
  }
  return ordered
}

const textIndexesOf = (built: Database.Database) =>
  built
    .prepare<[], string>("select name from pragma_table_list where schema = 'main' and type = 'virtual'")
    .pluck()
    .all()

/** Rows of one statement fill it; values that are too long for one are put together in it. */
function* rowsOf(built: Database.Database, table: string): Generator<string> {
  const columns = tablesOf(built).get(table) ?? []
  const key = built
    .prepare<[string], string>('select name from pragma_table_info(?) where pk > 0 order by pk')
    .pluck()
    .all(table)
  const names = columns.map(quoted).join(', ')
  const into = `insert into ${quoted(table)} (${names}) values `
  const order = key.map(quoted).join(', ')
  const rows = built
    .prepare<[], Value[]>(`select ${names} from ${quoted(table)}${order === '' ? '' : ` order by ${order}`}`)
    .raw()
    .safeIntegers()
  let pending: string[] = []
  let bytes = 0
  for (const row of rows.iterate()) {
    const short = row.map((value) => literal(pieceOf(value, 0)))
    const line = `(${short.join(', ')})`
    const length = Buffer.byteLength(line) + 2
    if (length + into.length > STATEMENT_BYTES) throw new RestoreRefused(`a row of ${table} is too wide for D1`)
    if (bytes + length + into.length > STATEMENT_BYTES) {
      yield into + pending.join(',\n')
      pending = []
      bytes = 0
    }
    pending.push(line)
    bytes += length
    const rest = row.flatMap((value, i) => restOf(value).map((piece) => ({ column: columns[i] ?? '', piece })))
    if (rest.length === 0) continue
    yield into + pending.join(',\n')
    pending = []
    bytes = 0
    const where = key
      .map((column) => `${quoted(column)} = ${literal(row[columns.indexOf(column)] ?? null)}`)
      .join(' and ')
    for (const { column, piece } of rest) {
      const name = quoted(column)
      const longer = `${name} || ${literal(piece)}`
      // Joining makes a text of blobs.
      const joined = typeof piece === 'string' ? longer : `cast(${longer} as blob)`
      yield `update ${quoted(table)} set ${name} = ${joined} where ${where}`
    }
  }
  if (pending.length > 0) yield into + pending.join(',\n')
}

const isLong = (value: Value): value is string | Buffer =>
  value !== null && typeof value === 'object'
    ? value.length > VALUE_CHARACTERS
    : typeof value === 'string' && value.length > VALUE_CHARACTERS

function pieceOf(value: Value, at: number): Value {
  if (!isLong(value)) return value
  if (typeof value !== 'string') return value.subarray(at, at + VALUE_CHARACTERS)
  // Not between the halves of a character.
  const [from, to] = [at, at + VALUE_CHARACTERS].map((end) => (isLowSurrogate(value, end) ? end + 1 : end))
  return value.slice(from, to)
}

const isLowSurrogate = (text: string, at: number) => (text.charCodeAt(at) & 0xfc00) === 0xdc00

function restOf(value: Value): (string | Buffer)[] {
  if (!isLong(value)) return []
  const pieces: (string | Buffer)[] = []
  for (let at = VALUE_CHARACTERS; at < value.length; at += VALUE_CHARACTERS) {
    const piece = pieceOf(value, at)
    if (typeof piece === 'string' || Buffer.isBuffer(piece)) pieces.push(piece)
  }
  return pieces
}

/**
 * A value in SQL. As bytes: a text with NUL, where SQL ends, or with what programs change, which are line breaks, and the
 * words for transactions that `wrangler --local` cuts out.
 */
function literal(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? realOf(value) : `${value < 0 ? '-' : ''}9e999`
  if (typeof value !== 'string') return `x'${value.toString('hex')}'`
  // oxlint-disable-next-line no-control-regex
  return /[\0\r\n]|begin transaction|commit;/i.test(value)
    ? `cast(x'${Buffer.from(value).toString('hex')}' as text)`
    : `'${value.replaceAll("'", "''")}'`
}

const realOf = (value: number) => (Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value))
