import { existsSync, statSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { Log } from '../../../app/base/log.ts'
import { COPY_KEYS_KEY } from '../../../app/system/copies/keys.ts'
import { SERVICE_MARK_KEY } from '../../../app/system/copies/service-mark.ts'
import { RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import { hasCode } from '../../disk/error-code.ts'
import { tablesOf } from '../tables/tables-of.ts'
import { quoted } from '../../../app/system/backup/format/tables.ts'

/** The database that a restore replaces: none, a readable one, or an unreadable one. */
export type Replaced = 'none' | 'sound' | 'unreadable'

/** SQLite's files beside a database. It would apply them to any other database with the same name. */
export const SIDE_FILES = ['-wal', '-shm', '-journal'] as const

/**
 * Moves all content of the old database into its main file, so that no side files are left beside the new one. Throws
 * RestoreRefused while another process has it open.
 */
export function settleReplaced(file: string, log: Log): Replaced {
  if (!existsSync(file)) return 'none'
  let database: Database.Database | null = null
  try {
    database = new Database(file, { timeout: 1000 })
    database.pragma('wal_checkpoint(TRUNCATE)')
    // Leaving WAL mode needs exclusive access, and removes the side files.
    const mode = database.pragma('journal_mode = DELETE', { simple: true })
    if (mode !== 'delete') throw new Error(`the database stays in ${String(mode)} mode`)
  } catch (error) {
    if (hasCode(error, 'SQLITE_BUSY', 'SQLITE_LOCKED')) {
      throw new RestoreRefused(`Restore failed: ${file} is in use; stop the service first`, { cause: error })
    }
    if (!isBroken(error)) throw error
    log.warn('The replaced database cannot be read; its audit entries are not copied', { error })
    return 'unreadable'
  } finally {
    database?.close()
  }
  return 'sound'
}

/** Whether SQLite can't read a database. */
export function isBroken(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
}

/** Whether there are still side files that SQLite would apply. */
export function hasSideFiles(file: string): boolean {
  return SIDE_FILES.some((suffix) => existsSync(file + suffix) && statSync(file + suffix).size > 0)
}

/**
 * Copies audit entries of the replaced database that the backup lacks. If both share a history, these are the entries
 * with an id beyond the backup's, under their own ids; otherwise the entries made after the backup, under new ones.
 * Returns their number.
 */
export function carryAudit(database: Database.Database, replacedFile: string, createdAt: number, log: Log): number {
  database.prepare('attach ? as replaced').run(replacedFile)
  try {
    return copyEntries(database, createdAt)
  } catch (error) {
    if (!isBroken(error)) throw error
    log.warn('The audit log of the replaced database cannot be read; its entries are not copied', { error })
    return 0
  } finally {
    database.exec('detach replaced')
  }
}

function copyEntries(database: Database.Database, createdAt: number): number {
  const known = new Set(
    database.prepare<[], string>("select name from pragma_table_info('audit_log', 'replaced')").pluck().all(),
  )
  // The replaced database may be of an older version: columns that it lacks stay null.
  const columns = (tablesOf(database).get('audit_log') ?? []).filter(
    (column) => known.has(column) && !['id', 'hash'].includes(column),
  )
  if (columns.length === 0) return 0
  const list = columns.map(quoted).join(', ')
  const isSealed = known.has('hash')
  const same = columns.map((column) => `a.${quoted(column)} is b.${quoted(column)}`).join(' and ')
  const sameSeal = isSealed ? 'coalesce(a.hash = b.hash, true)' : 'true'
  const last = database.prepare<[], bigint | null>('select max(id) from main.audit_log').safeIntegers().pluck().get()
  const isOneHistory =
    last !== null &&
    last !== undefined &&
    database
      .prepare(
        `select 1 from main.audit_log a join replaced.audit_log b on a.id = b.id where a.id = ? and ${same} and ${sameSeal}`,
      )
      .get(last) !== undefined
  const { changes } = isOneHistory
    ? database
        .prepare(
          `insert into main.audit_log (id, ${list}) select id, ${list} from replaced.audit_log where id > ? order by id`,
        )
        .run(last)
    : database
        .prepare(
          `insert into main.audit_log (${list}) select ${list} from replaced.audit_log where timestamp >= ? order by id`,
        )
        .run(createdAt)
  // An entry keeps its seal with its id, so that a change to it is also detected in the restored log.
  if (isOneHistory && isSealed) {
    database
      .prepare(
        `update main.audit_log set hash = b.hash from replaced.audit_log b
          where b.id = audit_log.id and b.id > ? and b.hash is not null`,
      )
      .run(last)
  }
  return changes
}

/**
 * Copies what the replaced database learned after the backup and what gives nobody anything: the handles in users'
 * passkeys, because an authenticator keeps them and a passkey may be put back; and which providers send groups, because
 * otherwise a missing claim would count as unknown again and leave an old role.
 */
export function carryFacts(database: Database.Database, replacedFile: string): void {
  database.prepare('attach ? as replaced').run(replacedFile)
  try {
    // In a database with another history the same ids mean other users.
    copyRows(
      database,
      'passkey_handles',
      `insert or ignore into main.passkey_handles (user_id, handle) select h.user_id, h.handle
        from replaced.passkey_handles h join replaced.users b on b.id = h.user_id
        join main.users a on a.id = b.id and a.created_at = b.created_at`,
    )
    copyRows(
      database,
      'provider_claims',
      `insert or ignore into main.provider_claims (issuer, path, seen_at)
        select issuer, path, seen_at from replaced.provider_claims`,
    )
  } catch (error) {
    // The restore works without them, and says already that this database is broken.
    if (!isBroken(error)) throw error
  } finally {
    database.exec('detach replaced')
  }
}

/**
 * Whose private keys open copies stays as it was: a key that was lost or given back since the backup must open none again.
 * If that is unknown there are none, and copies fail until an administrator names some. The mark at the places stays too.
 */
export function keepRecipients(database: Database.Database, replacedFile: string | null): void {
  database
    .prepare("update settings set value = json_set(value, '$.recipients', json('[]')) where key = ?")
    .run(COPY_KEYS_KEY)
  if (replacedFile === null) return
  database.prepare('attach ? as replaced').run(replacedFile)
  try {
    const rows = (key: string) => `select key, value, updated_at from replaced.settings where key = '${key}'`
    const columns = '(key, value, updated_at)'
    copyRows(database, 'settings', `insert or replace into main.settings ${columns} ${rows(COPY_KEYS_KEY)}`)
    copyRows(database, 'settings', `insert or ignore into main.settings ${columns} ${rows(SERVICE_MARK_KEY)}`)
  } catch (error) {
    if (!isBroken(error)) throw error
  } finally {
    database.exec('detach replaced')
  }
}

/** Does nothing if the replaced database is of an older version without this table. */
function copyRows(database: Database.Database, table: string, statement: string): void {
  const exists = database.prepare("select count(*) from replaced.sqlite_schema where type = 'table' and name = ?")
  if (exists.pluck().get(table) === 1) database.prepare(statement).run()
}

/** An epoch that no session of either database has. */
export function freshEpoch(database: Database.Database, replacedFile: string | null, now: number): number {
  const highest = (schema: string) =>
    database.prepare<[], number | null>(`select max(session_epoch) from ${schema}.users`).pluck().get() ?? 0
  const own = highest('main')
  if (replacedFile === null) return Math.max(now, own + 1)
  database.prepare('attach ? as replaced').run(replacedFile)
  try {
    return Math.max(now, own + 1, highest('replaced') + 1)
  } catch (error) {
    // A database from before there were users, or one that can't be read.
    if (!(error instanceof Database.SqliteError)) throw error
    return Math.max(now, own + 1)
  } finally {
    database.exec('detach replaced')
  }
}
