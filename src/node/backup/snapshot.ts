import type { BackupKind } from '../../app/system/backup/backup.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { decodeCell, rowJson } from '../../app/system/backup/format/cells.ts'
import type { Files } from './folder/files.ts'
import { type Manifest, type ManifestTable, renderManifest } from '../../app/system/backup/format/manifest.ts'
import { readManifest } from './folder/read-manifest.ts'
import { MANIFEST } from '../../app/system/backup/format/names.ts'
import { quoted, tableHead, type TableShape } from '../../app/system/backup/format/tables.ts'

const MAX_CHUNK_ROWS = 1000
const CHUNK_CHARACTERS = 1024 * 1024

export type SnapshotJob = {
  /** The database file. */
  readonly database: string
  /** The directory of backups. */
  readonly directory: string
  readonly name: string
  readonly createdAt: number
  readonly kind: BackupKind
  readonly appVersion: string
  readonly schema: string
  readonly tables: readonly TableShape[]
  readonly signingKey: Uint8Array | null
}

/** Finished tables, rows of all tables, and the current table. */
export type SnapshotProgress = { readonly tables: number; readonly rows: number; readonly table: string }

/** The path of a backup until it is complete. After a crash, the next start deletes it. */
export function partialName(name: string): string {
  return `.${name}.partial`
}

/**
 * Writes a backup from one read snapshot under a temporary name, and renames it when all of it is on the disk. On an
 * error nothing is left.
 */
export function writeSnapshot(job: SnapshotJob, files: Files, onProgress: (at: SnapshotProgress) => void): Manifest {
  const partial = join(job.directory, partialName(job.name))
  const database = new Database(job.database, { readonly: true, fileMustExist: true })
  try {
    files.makeDirectory(partial)
    const tables = readTables(database, job, partial, files, onProgress)
    const { appVersion, schema, createdAt, kind } = job
    const content = { formatVersion: 1 as const, appVersion, schema, createdAt, kind, tables }
    writeWhole(files, join(partial, MANIFEST), renderManifest(content, job.signingKey))
    files.sync(partial)
    const manifest = readManifest(partial)
    files.rename(partial, join(job.directory, job.name))
    files.sync(job.directory)
    return manifest
  } catch (error) {
    files.remove(partial)
    throw error
  } finally {
    database.close()
  }
}

function writeWhole(files: Files, path: string, text: string): void {
  const fd = files.create(path)
  try {
    files.write(fd, Buffer.from(text))
  } catch (error) {
    files.close(fd)
    throw error
  }
  files.finish(fd)
}

function readTables(
  database: Database.Database,
  job: SnapshotJob,
  partial: string,
  files: Files,
  onProgress: (at: SnapshotProgress) => void,
): ManifestTable[] {
  database.function('to_base64', { deterministic: true }, (blob) => Buffer.from(Object(blob)).toString('base64'))
  database.exec('begin')
  const done: ManifestTable[] = []
  let before = 0
  for (const table of job.tables) {
    const path = join(partial, `${table.name}.json`)
    const report = (rows: number) => onProgress({ tables: done.length, rows: before + rows, table: table.name })
    const written = writeTable(database, table, path, files, report)
    done.push(written)
    before += written.rows
  }
  database.exec('commit')
  return done
}

function writeTable(
  database: Database.Database,
  table: TableShape,
  path: string,
  files: Files,
  report: (rows: number) => void,
): ManifestTable {
  const { name, columns } = table
  const fd = files.create(path)
  const hash = createHash('sha256')
  let bytes = 0
  let rows = 0
  const put = (text: string) => {
    const chunk = Buffer.from(text)
    hash.update(chunk)
    files.write(fd, chunk)
    bytes += chunk.length
  }
  try {
    put(tableHead(table))
    for (const chunk of rowChunks(database, table)) {
      put(rows === 0 ? chunk.text : `,\n${chunk.text}`)
      rows += chunk.rows
      report(rows)
    }
    put(rows === 0 ? TABLE_END : `\n${TABLE_END}`)
  } catch (error) {
    files.close(fd)
    throw error
  }
  files.finish(fd)
  const sequence = readSequence(database, name)
  return { name, file: `${name}.json`, columns: [...columns], rows, bytes, sha256: hash.digest('hex'), sequence }
}
const TABLE_END = ']}\n'

type Chunk = { readonly text: string; readonly rows: number }
type Page = { text: string | null; rows: bigint; last: bigint | null }

/** The rows of a table as lines of JSON, in the order of its key, some at a time. SQLite itself makes the JSON. */
function* rowChunks(database: Database.Database, table: TableShape): Generator<Chunk> {
  const { key, order } = keyOf(database, table)
  const sql = (condition: string) =>
    `select group_concat(line, ',' || char(10)) as text, count(*) as rows, ${key === null ? 'max(place)' : 'null'} as last
      from (select ${rowJson(typedColumns(database, table))} as line, ${key === null ? `${order} as place` : '0'}
        from ${quoted(table.name)} ${condition} order by ${order} limit ?)`
  const first = database.prepare<unknown[], Page>(sql('')).safeIntegers()
  const next = database
    .prepare<unknown[], Page>(sql(`where (${order}) > (${(key ?? ['']).map(() => '?').join(', ')})`))
    .safeIntegers()
  let limit = 64
  for (let page = first.get(limit); page?.text;) {
    const { text } = page
    const rows = Number(page.rows)
    yield { text, rows }
    // Reads about a megabyte at a time, however wide the rows are.
    limit = Math.max(1, Math.min(MAX_CHUNK_ROWS, limit * 4, Math.floor((CHUNK_CHARACTERS * rows) / text.length)))
    page = next.get(...(key === null ? [page.last] : lastKey(text, table, key)), limit)
  }
}

/** The rowid, which every ordinary table has and an index look-up finds; for WITHOUT ROWID tables the primary key. */
function keyOf(database: Database.Database, { name, columns }: TableShape): { key: string[] | null; order: string } {
  const isRowless = database
    .prepare("select 1 from pragma_table_list where schema = 'main' and name = ? and wr = 1")
    .get(name)
  if (isRowless === undefined) {
    const rowid = ['rowid', '_rowid_', 'oid'].find((alias) => !columns.includes(alias))
    if (rowid === undefined) throw new Error(`${name} hides its rowid`)
    return { key: null, order: rowid }
  }
  const key = database
    .prepare<[string], { name: string }>('select name from pragma_table_info(?) where pk > 0 order by pk')
    .all(name)
    .map(({ name }) => name)
  return { key, order: key.map(quoted).join(', ') }
}

function typedColumns(database: Database.Database, { name, columns }: TableShape): { name: string; type: string }[] {
  const types = new Map(
    database
      .prepare<[string], { name: string; type: string }>('select name, type from pragma_table_info(?)')
      .all(name)
      .map((column) => [column.name, column.type]),
  )
  return columns.map((column) => {
    const type = types.get(column)
    if (type === undefined) throw new Error(`the database has no column ${name}.${column}`)
    return { name: column, type }
  })
}

function lastKey(text: string, { columns }: TableShape, key: readonly string[]): unknown[] {
  const row: unknown = JSON.parse(text.slice(text.lastIndexOf('\n') + 1))
  if (!Array.isArray(row)) throw new Error('not a row')
  return key.map((column) => decodeCell(row[columns.indexOf(column)]))
}

function readSequence(database: Database.Database, table: string): number | null {
  const hasSequences = database.prepare("select 1 from sqlite_schema where name = 'sqlite_sequence'").get()
  if (hasSequences === undefined) return null
  const row = database.prepare<[string], { seq: number }>('select seq from sqlite_sequence where name = ?').get(table)
  return row === undefined || !Number.isSafeInteger(row.seq) ? null : row.seq
}
