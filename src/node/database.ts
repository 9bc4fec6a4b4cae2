import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import * as schema from '../db/schema.ts'
import { type Db, refuseMiscount, type Statement, type Store } from '../db/store.ts'
import { freeBytes } from './disk/reserve.ts'
import { hasCode } from './disk/error-code.ts'
import { awaitWrites } from './flushing/direct-writes.ts'
import type { Writes } from './flushing/writes.ts'
import { latestTime } from './migrations.ts'
import { refuseDatabase, StartRefused } from './start/problems.ts'

/** The migration history, as far from `src/node` as from `dist/node`. */
export const MIGRATIONS_DIR = fileURLToPath(new URL('../../drizzle', import.meta.url))

/** Of the pages that were used last: the kernel has the others. */
const CACHE_KIB = 4000

type OnStep = (done: number, of: number) => void

export interface SqliteStore extends Store {
  readonly sqlite: Database.Database
  /** Free space in the file that new rows can use before the file grows. */
  spareBytes(): number
  close(): void
}

/**
 * Opens the database file, or `:memory:`, and migrates it to this version's schema. Throws StartRefused for a newer
 * schema, and for problems that the operator can solve: a damaged file, a wrong file owner, a full disk. `onStep` is told
 * before each step of a migration, which may take minutes.
 */
export function openDatabase(
  file: string,
  onStep: OnStep = () => {},
  openWrites?: (sqlite: Database.Database) => Writes,
): SqliteStore {
  let sqlite: Database.Database | null = null
  try {
    if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    sqlite = new Database(file)
    refuseNewer(sqlite, file)
    sqlite.pragma('journal_mode = WAL')
    // An acknowledged write must be on the disk: a Raspberry Pi loses power without warning.
    // Decision: docs/decisions/short-decisions.md#sqlite-writes-with-synchronous-full
    sqlite.pragma('synchronous = FULL')
    sqlite.pragma('busy_timeout = 5000')
    sqlite.pragma(`cache_size = -${CACHE_KIB}`)
    migrateDatabase(sqlite, onStep)
    if (openWrites !== undefined) copyLeftLog(sqlite)
    return sqliteStore(sqlite, openWrites?.(sqlite))
  } catch (error) {
    sqlite?.close()
    return refuseDatabase(file, error)
  }
}

/** Each commit waits for the disk. */
function flushedByCommits(sqlite: Database.Database): Writes {
  return { change: (run) => run(), lazily: (run) => withoutFlush(sqlite, run), pending: () => null }
}

/** A store over an open database of this version's schema. `packs`: writes as on the edge. */
export function sqliteStore(sqlite: Database.Database, given?: Writes, packs = false): SqliteStore {
  const db = drizzle(sqlite, { schema })
  const writes = given ?? flushedByCommits(sqlite)
  if (given !== undefined) awaitWrites(db, given.change)
  const pages = sqlite
    .prepare<[], number>('select page_count * page_size from pragma_page_count, pragma_page_size')
    .pluck()
  const spare = sqlite
    .prepare<[], number>('select freelist_count * page_size from pragma_freelist_count, pragma_page_size')
    .pluck()
  return {
    sqlite,
    spareBytes: () => spare.get() ?? 0,
    db: asDb(db),
    packs,
    atomic: async (all, flush) => {
      await (flush === undefined ? writes.change(() => runAll(sqlite, all)) : writes.lazily(() => runAll(sqlite, all)))
    },
    lazily: writes.lazily,
    settled: writes.pending,
    sizeBytes: async () => pages.get() ?? null,
    space: async () => {
      if (sqlite.memory) return null
      const bytes = pages.get() ?? 0
      return { usedBytes: bytes - (spare.get() ?? 0), limitBytes: bytes + freeBytes(dirname(sqlite.name)) }
    },
    version: versionOf(sqlite),
    close: () => closeFlushed(sqlite),
  }
}

/**
 * The connection counts its own changes. Detecting changes by others needs a check of the file, which takes its locks,
 * so one check serves all requests in a turn of the event loop.
 */
function versionOf(sqlite: Database.Database): () => number {
  // Decision: docs/decisions/short-decisions.md#the-viewer-is-looked-up-again-only-after-a-commit
  const own = sqlite.prepare<[], number>('select total_changes()').pluck()
  const others = sqlite.prepare<[], number>('pragma data_version').pluck()
  let seen = { own: -1, others: -1 }
  let version = 0
  let hasLooked = false
  const nextTurn = () => {
    hasLooked = false
  }
  return () => {
    const now = { own: own.get() ?? 0, others: hasLooked ? seen.others : (others.get() ?? 0) }
    if (!hasLooked) setImmediate(nextTurn).unref()
    hasLooked = true
    if (now.own !== seen.own || now.others !== seen.others) version++
    seen = now
    return version
  }
}

/** Checked before anything is written: an older version would misread the tables of a newer one and damage them. */
function refuseNewer(sqlite: Database.Database, file: string): void {
  const table = sqlite.prepare("select 1 from sqlite_master where type = 'table' and name = '__drizzle_migrations'")
  if (table.get() === undefined) return
  const latest = sqlite.prepare<[], number>('select coalesce(max(created_at), 0) from __drizzle_migrations').pluck()
  if ((latest.get() ?? 0) <= latestTime(MIGRATIONS_DIR)) return
  throw new StartRefused(
    `${file}: found the database of a newer version, expected one of this version or an older one; start the newer version, or restore a backup that this one made`,
  )
}

function migrateDatabase(sqlite: Database.Database, onStep: OnStep): void {
  // A migration may rebuild a table that others refer to; SQLite ignores this pragma inside a transaction.
  sqlite.pragma('foreign_keys = OFF')
  const applied = applyMigrations(sqlite, MIGRATIONS_DIR, onStep)
  // Skipped without a migration, because only that can break a reference, and the check reads every row: seconds for
  // ten million.
  const broken = applied === 0 ? [] : sqlite.pragma('foreign_key_check')
  if (Array.isArray(broken) && broken.length > 0)
    throw new Error(`${broken.length} rows refer to rows that no longer exist`)
  sqlite.pragma('foreign_keys = ON')
}

/**
 * Applies the missing migrations of a folder in one transaction, recorded in the table of drizzle's own migrator. That
 * migrator is not used because it checks before it locks, so that two processes would run the same migrations, and
 * because it hides why one failed. Returns the number of applied migrations.
 */
export function applyMigrations(sqlite: Database.Database, folder: string, onStep: OnStep = () => {}): number {
  const newest = latestTime(folder)
  const apply = sqlite.transaction(() => {
    sqlite.exec(
      'create table if not exists __drizzle_migrations (id serial primary key, hash text not null, created_at numeric)',
    )
    const latest = sqlite.prepare<[], number>('select coalesce(max(created_at), 0) from __drizzle_migrations').pluck()
    const from = latest.get() ?? 0
    // A usual start reads none of the files.
    if (from >= newest) return 0
    const note = sqlite.prepare('insert into __drizzle_migrations (hash, created_at) values (?, ?)')
    const missing = readMigrationFiles({ migrationsFolder: folder }).filter((each) => each.folderMillis > from)
    const steps = missing.reduce((sum, { sql }) => sum + sql.length, 0)
    let done = 0
    for (const { sql, hash, folderMillis } of missing) {
      for (const statement of sql) {
        onStep(done++, steps)
        sqlite.exec(statement)
      }
      note.run(hash, folderMillis)
    }
    return missing.length
  })
  return apply.immediate()
}

/**
 * In WAL mode a commit at NORMAL is in the file, where every process sees it. The next commit at FULL writes it to the
 * disk, in order: sqlite.org/pragma.html, "synchronous".
 */
function withoutFlush<T>(sqlite: Database.Database, run: () => T): T {
  const level = sqlite.pragma('synchronous', { simple: true })
  sqlite.pragma('synchronous = NORMAL')
  try {
    return run()
  } finally {
    sqlite.pragma(`synchronous = ${String(level)}`)
  }
}

/**
 * What a killed process left in the log may be in memory and not on the disk, and SQLite would write behind it. Throws if
 * the disk refuses it. If another instance uses the log, that one takes care of it.
 */
function copyLeftLog(sqlite: Database.Database): void {
  sqlite.pragma('busy_timeout = 500')
  sqlite.pragma('wal_checkpoint(RESTART)')
  sqlite.pragma('busy_timeout = 5000')
}

/** SQLite flushes only when the last connection closes. This one flushes itself, as another may stay open. */
function closeFlushed(sqlite: Database.Database): void {
  try {
    if (sqlite.open) sqlite.pragma('wal_checkpoint(PASSIVE)')
  } catch (error) {
    // Closing would flush again, succeed, and delete the log, which alone has what the disk refused.
    if (!hasCode(error, 'SQLITE_IOERR_FSYNC')) sqlite.close()
    throw error
  }
  sqlite.close()
}

function runAll(sqlite: Database.Database, all: readonly Statement[]): void {
  refuseMiscount(all)
  sqlite
    .transaction(() => {
      for (const statement of all) runNow(statement)
    })
    .immediate()
}

// Every statement built on a better-sqlite3 database has a synchronous `run`.
function runNow(statement: Statement): void {
  if (!('run' in statement) || typeof statement.run !== 'function') throw new TypeError('not a statement')
  statement.run()
}

// A BetterSQLite3Database is a BaseSQLiteDatabase<'sync', …>; the class is invariant in its mode, its use is not.
function asDb(db: unknown): Db {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return db as Db
}
