import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Log } from '../../../app/base/log.ts'
import type { Cell } from '../../../app/system/backup/format/cells.ts'
import type { ColumnRule, Rules } from '../../../app/system/backup/format/column-rules.ts'
import { columnRules } from '../tables/column-rules.ts'
import { BackupDamage } from '../../../app/system/backup/format/damage.ts'
import type { Manifest, ManifestTable } from '../../../app/system/backup/format/manifest.ts'
import { applyMigrations } from '../../database.ts'
import { copyMigrations, latestTag } from '../../migrations.ts'
import { checkShape } from '../../../app/system/backup/format/shape.ts'
import { refuseUnknownMigration } from '../tables/shape.ts'
import { readTableFile } from '../tables/file.ts'
import { quoted } from '../../../app/system/backup/format/tables.ts'
import { tablesOf } from '../tables/tables-of.ts'

/** Rows of one INSERT: nearly twice as fast as one each, and far from SQLite's 32,766 values for any table. */
const ROWS_AT_ONCE = 16

export type BuildOptions = {
  /** The path of the new database file, which does not exist yet. */
  readonly file: string
  /** A directory for temporary files. */
  readonly scratch: string
  readonly backup: string
  readonly manifest: Manifest
  readonly migrations: string
  readonly log: Log
  readonly onProgress: (rows: number) => void
}

/**
 * Builds a database from a backup: runs the migrations up to the backup's, inserts its rows, then runs the later
 * migrations. Returns it open and checked. Throws BackupDamage, or RestoreRefused for a backup of a later version.
 */
export function buildDatabase(options: BuildOptions): Database.Database {
  const { manifest, migrations, log } = options
  refuseUnknownMigration(manifest, migrations)
  const database = new Database(options.file)
  try {
    // Nobody else uses this file, and it is deleted after a failure.
    database.pragma('journal_mode = OFF')
    database.pragma('synchronous = OFF')
    database.pragma('locking_mode = EXCLUSIVE')
    database.pragma('foreign_keys = OFF')
    const folder = join(options.scratch, 'migrations')
    copyMigrations(migrations, manifest.schema, folder)
    migrateBuilt(database, folder)
    checkShape(manifest, tablesOf(database))
    loadTables(database, options, columnRules(database))
    // A failing migration is rolled back, which needs a journal.
    database.pragma('journal_mode = MEMORY')
    const latest = latestTag(migrations)
    if (latest !== manifest.schema) {
      log.info(`Schema migration required: ${manifest.schema} -> ${latest}`)
      migrateBuilt(database, migrations)
    }
    emptyTextIndexes(database)
    countRows(database)
    checkWhole(database)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function migrateBuilt(database: Database.Database, folder: string): void {
  try {
    applyMigrations(database, folder)
  } catch (error) {
    if (!(error instanceof Database.SqliteError) || !isRefusedRow(error)) throw error
    throw new BackupDamage(`a row cannot be upgraded to this version: ${error.message}`, { cause: error })
  }
}

function loadTables(database: Database.Database, options: BuildOptions, rules: Rules): void {
  const { manifest, backup, onProgress } = options
  // Building indexes after the rows is cheaper, and triggers already ran when the rows were first written.
  const put = setAside(database)
  database.exec('begin')
  let rows = 0
  for (const table of manifest.tables) {
    const onRows = (count: number) => onProgress((rows += count))
    loadTable(database, { backup, table, rules: rules.get(table.name), onRows })
    if (table.sequence !== null) writeSequence(database, table.name, table.sequence)
  }
  asDamage('the rows contradict each other', put)
  database.exec('commit')
}

/** Drops secondary indexes and triggers; returns the statements that create them again. */
function setAside(database: Database.Database): () => void {
  const all = database
    .prepare<[], { type: string; name: string; sql: string }>(
      `select type, name, sql from sqlite_schema where type in ('index', 'trigger') and sql is not null order by type`,
    )
    .all()
  for (const { type, name } of all) database.exec(`drop ${type} ${quoted(name)}`)
  return () => {
    for (const { sql } of all) database.exec(sql)
  }
}

/**
 * The service builds the text indexes later beside its work, newest rows first, so that they do not make a restore
 * longer.
 */
function emptyTextIndexes(database: Database.Database): void {
  const tables = database.prepare<[], string>('select table_name from text_indexes').pluck().all()
  for (const table of tables) {
    const index = quoted(`${table}_text`)
    database.exec(`insert into ${index} (${index}) values ('delete-all')`)
    database
      .prepare(
        `update text_indexes set indexed_from = (select coalesce(max(id), 0) + 1 from ${quoted(table)}) where table_name = ?`,
      )
      .run(table)
  }
}

/**
 * The count of nodes is not part of a backup, and the triggers that maintain it did not run for these rows. Those of the
 * edge do not count at all: src/edge/unneeded.ts. What no trigger counts is counted there when it matters.
 */
function countRows(database: Database.Database): void {
  database.exec(`update revisions set row_count = (select count(*) from nodes) where name = 'nodes';
    delete from row_counts where table_name in ('messages', 'receptions', 'positions', 'proven_packets');
    insert into row_counts select 'messages', from_node_num, count(*) from messages group by from_node_num;
    insert into row_counts select 'receptions', m.from_node_num, count(*)
      from messages m cross join receptions r on r.message_id = m.id group by m.from_node_num;
    insert into row_counts select 'positions', node_id, count(*) from positions group by node_id`)
}

type Load = {
  readonly backup: string
  readonly table: ManifestTable
  readonly rules: ReadonlyMap<string, ColumnRule> | undefined
  readonly onRows: (count: number) => void
}

function loadTable(database: Database.Database, { backup, table, rules, onRows }: Load): void {
  const into = `insert into ${quoted(table.name)} (${table.columns.map(quoted).join(', ')}) values `
  const place = `(${table.columns.map(() => '?').join(', ')})`
  const one = database.prepare<[Cell[]]>(into + place)
  const many = database.prepare<[Cell[]]>(into + Array.from({ length: ROWS_AT_ONCE }, () => place).join(', '))
  const load = (rows: Cell[][]) => {
    asDamage(table.file, () => {
      let done = 0
      for (; done + ROWS_AT_ONCE <= rows.length; done += ROWS_AT_ONCE) {
        many.run(rows.slice(done, done + ROWS_AT_ONCE).flat())
      }
      for (const row of rows.slice(done)) one.run(row)
    })
    onRows(rows.length)
  }
  readTableFile(backup, table, load, rules)
}

function writeSequence(database: Database.Database, table: string, sequence: number): void {
  if (database.prepare("select 1 from sqlite_schema where name = 'sqlite_sequence'").get() === undefined) return
  const known = database.prepare('select 1 from sqlite_sequence where name = ?').get(table)
  const sql =
    known === undefined
      ? 'insert into sqlite_sequence (seq, name) values (?, ?)'
      : 'update sqlite_sequence set seq = max(seq, ?) where name = ?'
  database.prepare(sql).run(BigInt(sequence), table)
}

/** If SQLite refuses the rows, the backup is at fault; after a disk error it is not. */
function asDamage(what: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof Database.SqliteError && isRefusedRow(error))) throw error
    throw new BackupDamage(`${what}: ${error.message}`, { cause: error })
  }
}

// SQLITE_MISMATCH: an integer key is not an integer, even after SQLite's own conversions.
function isRefusedRow({ code }: { readonly code: string }): boolean {
  return /^SQLITE_(CONSTRAINT|MISMATCH)/.test(code)
}

function checkWhole(database: Database.Database): void {
  const [integrity] = database.prepare<[], { integrity_check: string }>('pragma integrity_check(1)').all()
  if (integrity?.integrity_check !== 'ok') {
    throw new BackupDamage(`the rebuilt database is damaged: ${integrity?.integrity_check}`)
  }
  const broken = database.prepare('select count(*) from pragma_foreign_key_check').pluck().get()
  if (broken !== 0) throw new BackupDamage(`${String(broken)} rows refer to rows that are not in the backup`)
}
