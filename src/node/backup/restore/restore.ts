import type { Signature } from '../../../app/system/backup/backup.ts'
import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { audit } from '../../../app/audit/audit.ts'
import type { Ctx } from '../../../app/base/context.ts'
import type { Log } from '../../../app/base/log.ts'
import {
  nameRestoredAccess,
  reapplyRestoredAccess,
  type StoredRestoredAccess,
  storeRestoredAccess,
  unknownRestoredAccess,
} from '../../../app/system/restore/restored-access.ts'
import { outcomeWrites } from '../../../app/system/backup/settings.ts'
import { type SqliteStore, sqliteStore } from '../../database.ts'
import { buildDatabase } from './build.ts'
import { BackupDamage, RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import { backupsDirectory, hasBackup, hasBackupOf } from '../folder/directory.ts'
import { isBrokenDisk, isDiskFull } from '../../disk/error-code.ts'
import { diskFiles, type Files } from '../folder/files.ts'
import { readSoundManifest } from '../inspect.ts'
import { databaseLockFile, type Lock, lockExclusively } from '../folder/lock.ts'
import { isSignedByOneOf, type Manifest, signingKey, totalRows } from '../../../app/system/backup/format/manifest.ts'
import { markerFile, readMarker, writeMarker } from './marker.ts'
import { findRestoredAccess, readUndecided } from './restored-access.ts'
import type { Stage } from './stage.ts'
import {
  carryAudit,
  carryFacts,
  freshEpoch,
  isBroken,
  hasSideFiles,
  keepRecipients,
  type Replaced,
  settleReplaced,
  SIDE_FILES,
} from './replaced.ts'

export type RestoreOptions = {
  readonly dataDir: string
  /** The database file, in `dataDir`. */
  readonly database: string
  readonly migrations: string
  readonly secrets: readonly string[]
  /** Refuses a backup that was not signed with one of `secrets`. */
  readonly requireSignature: boolean
  /** Restores such a backup even if the directory has signed backups of its own. */
  readonly allowUnsigned: boolean
  /** The context in which access that the restore gives back is revoked again; null: administrators decide. */
  readonly reapply: ((store: SqliteStore) => Ctx) | null
  readonly log: Log
  readonly now: () => number
  readonly files?: Files
  readonly onProgress?: (rows: number, of: number) => void
  /** The staged restore that this is. */
  readonly stage?: Stage
}

export type Restored = { readonly tables: number; readonly rows: number }

/** The database that a restore replaced. Only the newest one is kept. */
export const safetyCopyOf = (database: string): string => `${database}.before-restore`

// The directory in which a restore builds everything before it takes effect. If only the marker is still in it, the
// restore is done except for the marker. If the new database and the marker are both in it, the restore has not
// happened.
const scratchOf = (dataDir: string) => join(dataDir, '.restoring')
const builtIn = (scratch: string) => join(scratch, 'mesh.db')
const markerIn = (scratch: string) => join(scratch, 'marker')

/** Whether the new database has taken effect, and only its marker is missing: `recoverRestore` completes it. */
export function hasTakenEffect(dataDir: string): boolean {
  const scratch = scratchOf(dataDir)
  return existsSync(markerIn(scratch)) && !existsSync(builtIn(scratch))
}

/** Completes or undoes an interrupted restore. Does nothing while another process has the database open. */
export function recoverRestore(options: Pick<RestoreOptions, 'dataDir' | 'database' | 'files'>): void {
  const { dataDir, database, files = diskFiles } = options
  const scratch = scratchOf(dataDir)
  if (!existsSync(scratch)) return
  const lock = lockExclusively(databaseLockFile(dataDir))
  if (lock === null) return
  try {
    if (hasTakenEffect(dataDir)) {
      files.rename(markerIn(scratch), markerFile(dataDir))
      files.sync(dataDir)
      files.remove(scratch)
    } else {
      forget(files, scratch, database)
    }
  } finally {
    lock.release()
  }
}

/** Undoes a restore that has not happened. The marker goes first: alone it would mean that the restore is done. */
function forget(files: Files, scratch: string, live: string): void {
  files.remove(markerIn(scratch))
  files.sync(scratch)
  // The safety copy was already named, and is the live database itself.
  if (isSameFile(live, safetyCopyOf(live))) files.remove(safetyCopyOf(live))
  files.remove(scratch)
}

function isSameFile(a: string, b: string): boolean {
  if (!existsSync(a) || !existsSync(b)) return false
  const [one, other] = [lstatSync(a), lstatSync(b)]
  return one.ino === other.ino && one.dev === other.dev
}

/**
 * For RESTORE_FROM_BACKUP: restores the backup, unless the marker says that this has been done. Throws RestoreRefused.
 */
export async function restoreAtStart(options: RestoreOptions, name: string): Promise<void> {
  const marker = readMarker(options.dataDir)
  if (marker?.name === name) {
    options.log.warn(`Restore already completed: ${name} (delete ${markerFile(options.dataDir)} to restore it again)`)
    return
  }
  await restoreBackup(options, name)
}

/**
 * Restores a backup. Throws RestoreRefused, whose message is the line for the log; then database and marker are
 * unchanged.
 */
export async function restoreBackup(options: RestoreOptions, name: string): Promise<Restored> {
  const { dataDir } = options
  demandBackup(dataDir, name)
  let lock: Lock | null = null
  try {
    lock = lockExclusively(databaseLockFile(dataDir))
    if (lock === null) throw new RestoreRefused(`Restore failed: ${dataDir} is in use; stop the service first`)
    return await restoreHolding(options, name)
  } catch (error) {
    throw asRefusal(error)
  } finally {
    lock?.release()
  }
}

function demandBackup(dataDir: string, name: string): string {
  const directory = backupsDirectory(dataDir)
  if (hasBackup(directory, name)) return join(directory, name)
  throw new RestoreRefused(
    `Backup directory not found: ${directory}/${name}; use a directory name listed in ${directory}`,
  )
}

/** As `restoreBackup`, for who holds the exclusive lock of the database. */
export async function restoreHolding(options: RestoreOptions, name: string): Promise<Restored> {
  const { dataDir, log } = options
  try {
    const backup = demandBackup(dataDir, name)
    const { tables, rows, signature, report, held } = await restoreLocked(options, name, backup)
    log.info(`Restore completed: ${tables} tables, ${rows} rows restored from ${name}`)
    if (held > 0) {
      log.warn(
        `${held} connections of the backup stay off until an administrator releases them on the page Connections`,
      )
    }
    if (signature !== 'own') {
      const why = UNTRUSTED[signature]
      log.warn(
        `Restored a backup that this service did not sign: ${name} ${why}; anybody with access to its files may have changed them`,
      )
    }
    logRestoredAccess(log, report)
    return { tables, rows }
  } catch (error) {
    throw asRefusal(error)
  }
}

function asRefusal(error: unknown): unknown {
  if (error instanceof BackupDamage) {
    const what = error.message
    return new RestoreRefused(
      `Integrity validation failed: ${what}; use an earlier backup or download the archive again`,
      { cause: error },
    )
  }
  const refuse = (reason: string) =>
    new RestoreRefused(`Restore failed: ${reason}; the database is as it was`, { cause: error })
  if (isDiskFull(error)) return refuse('no space is left on the device')
  return isBrokenDisk(error) ? refuse('the disk is full or broken') : error
}

const UNTRUSTED = {
  foreign: 'is signed with a secret that this service does not have',
  none: 'is not signed',
} as const

/** `held`: connections that stay off. */
type Outcome = { readonly report: RestoredAccessReport; readonly held: number }
type Done = Restored & Outcome & { readonly signature: Signature }

/** What the restore undid, and the outcome of each change to reapply. */
type RestoredAccessReport = {
  readonly restoredAccess: readonly StoredRestoredAccess[]
  readonly outcomes: readonly string[] | null
}

const MAX_NAMED = 200

/** Names all users who have more permissions than before the restore. */
function logRestoredAccess(log: Log, { restoredAccess, outcomes }: RestoredAccessReport): void {
  restoredAccess.slice(0, MAX_NAMED).forEach((one, i) => {
    const at = one.at === null ? null : new Date(one.at).toISOString()
    const outcome = outcomes === null ? {} : { outcome: outcomes[i] }
    log.warn('The restore undid this change, made after the backup', {
      ...nameRestoredAccess(one),
      at,
      by: one.by,
      ...outcome,
    })
  })
  if (restoredAccess.length > MAX_NAMED)
    log.warn('The restore undid more changes of this kind', { more: restoredAccess.length - MAX_NAMED })
}

/**
 * An attacker can drop the signature, or sign with another secret. If this service signs its backups, a genuine backup
 * without its signature cannot be told from a forged one. Throws RestoreRefused.
 */
export function refuseUnsigned(
  options: Pick<RestoreOptions, 'dataDir' | 'secrets' | 'requireSignature' | 'allowUnsigned'>,
  name: string,
  signature: keyof typeof UNTRUSTED,
): void {
  const { dataDir, secrets, requireSignature, allowUnsigned } = options
  if (requireSignature) {
    throw new RestoreRefused(
      `Restore failed: ${name} ${UNTRUSTED[signature]}, and RESTORE_REQUIRE_SIGNATURE is true; add the secret that signed it to SESSION_SECRET`,
    )
  }
  if (allowUnsigned) return
  const keys = secrets.map(signingKey)
  if (!hasBackupOf(backupsDirectory(dataDir), name, (manifest) => isSignedByOneOf(manifest, keys))) return
  throw new RestoreRefused(
    `Restore failed: ${name} ${UNTRUSTED[signature]}, while this service signed others in the same directory; add the secret that signed it to SESSION_SECRET, or set RESTORE_UNSIGNED=yes if you know who made it`,
  )
}

async function restoreLocked(options: RestoreOptions, name: string, backup: string): Promise<Done> {
  const { dataDir, database: live, migrations, log, onProgress = () => {}, files = diskFiles } = options
  const { manifest, signature } = readSoundManifest(backup, options.secrets.map(signingKey))
  if (options.stage !== undefined && options.stage.manifest !== manifest.sha256) {
    throw new RestoreRefused(`Restore failed: ${name} was changed after its restore was staged`)
  }
  if (signature !== 'own') refuseUnsigned(options, name, signature)
  const rows = totalRows(manifest)
  const scratch = scratchOf(dataDir)
  files.remove(scratch)
  files.makeDirectory(scratch)
  let outcome: Outcome
  try {
    const file = builtIn(scratch)
    // SQLite would create it with the umask's permissions.
    files.finish(files.create(file))
    const built = buildDatabase({
      file,
      scratch,
      backup,
      manifest,
      migrations,
      log,
      onProgress: (done) => onProgress(done, rows),
    })
    let replaced: Replaced
    try {
      // From here on the old database is touched, though not changed.
      replaced = settleReplaced(live, log)
      outcome = await finishBuilt(built, options, { name, manifest, signature, replaced })
    } finally {
      built.close()
    }
    files.sync(file)
    writeMarker(files, markerIn(scratch), { name, restoredAt: options.now(), stage: options.stage?.id })
    files.sync(scratch)
    swap(files, live, file, replaced)
  } catch (error) {
    forget(files, scratch, live)
    throw error
  }
  // The restore has happened. If one of these fails, the next start continues from here.
  files.sync(dataDir)
  files.rename(markerIn(scratch), markerFile(dataDir))
  files.sync(dataDir)
  files.remove(scratch)
  return { tables: manifest.tables.length, rows, signature, ...outcome }
}

/**
 * Rows that are not in the backup: newer audit entries, the end of all sessions, and the entry about the restore
 * itself.
 */
async function finishBuilt(
  built: Database.Database,
  options: RestoreOptions,
  facts: {
    readonly name: string
    readonly manifest: Manifest
    readonly signature: Signature
    readonly replaced: Replaced
  },
): Promise<Outcome> {
  const { database: live, log, now } = options
  const { name, manifest, signature, replaced } = facts
  const replacedFile = replaced === 'sound' ? live : null
  const at = now()
  const lastOfBackup = built.prepare<[], number | null>('select max(id) from audit_log').pluck().get() ?? 0
  const carried = replacedFile === null ? 0 : carryAudit(built, replacedFile, manifest.createdAt, log)
  if (replacedFile !== null) carryFacts(built, replacedFile)
  keepRecipients(built, replacedFile)
  built.prepare('update users set session_epoch = ?').run(freshEpoch(built, replacedFile, at))
  const held = holdConnections(built, at)
  const found =
    replacedFile === null
      ? null
      : await restoredAccessBy({ built, replacedFile, lastOfBackup, backup: name, now: at }, log)
  const isUnknown = replaced === 'unreadable' || found === 'unreadable'
  // A list in the backup is used only if there is no better information.
  const restoredAccess = isUnknown
    ? [...readUndecided(built), unknownRestoredAccess(name)]
    : Array.isArray(found)
      ? found
      : []
  const details = {
    name,
    createdAt: manifest.createdAt,
    schema: manifest.schema,
    tables: manifest.tables.length,
    rows: totalRows(manifest),
    signature,
    carriedAuditEntries: carried,
    ...(held > 0 && { heldConnections: held }),
    ...(options.stage !== undefined && { stagedBy: options.stage.by }),
    ...(restoredAccess.length > 0 && { restoredAccess: restoredAccess.slice(0, MAX_NAMED).map(nameRestoredAccess) }),
    ...(restoredAccess.length > MAX_NAMED && { restoredAccessMore: restoredAccess.length - MAX_NAMED }),
  }
  const store = sqliteStore(built)
  const context = { store, ip: null, requestId: null, viewer: null, now: () => at }
  const list = found === null && !isUnknown ? [] : storeRestoredAccess(store, restoredAccess, at)
  const outcome = options.stage === undefined ? null : { name, stagedBy: options.stage.by, at, error: null }
  await store.atomic([
    audit(context, 'system_restored', details, { whole: true }),
    ...list,
    outcomeWrites(store, outcome, at),
  ])
  const outcomes = options.reapply === null ? null : await reapplyAll(options.reapply(store), restoredAccess)
  return { report: { restoredAccess, outcomes }, held }
}

/**
 * Radios serve one client, and a backup may be restored on a second machine beside the first, or bring back a port for
 * apps that was closed since: nothing that would be opened by itself is. Returns the number of connections.
 */
function holdConnections(built: Database.Database, at: number): number {
  // Both services would write and delete copies at one place.
  built.prepare('update copy_places set held_at = ?').run(at)
  // What was under way then may be complete now: it must not be cleaned away.
  built.prepare("delete from backup_copies where state = 'sending'").run()
  return built
    .prepare('update connections set held_at = ? where enabled and (sealed is not null or virtual_node is not null)')
    .run(at).changes
}

async function restoredAccessBy(
  facts: Parameters<typeof findRestoredAccess>[0],
  log: Log,
): Promise<StoredRestoredAccess[] | 'unreadable' | null> {
  try {
    return await findRestoredAccess(facts)
  } catch (error) {
    if (!isBroken(error)) throw error
    log.warn(
      'The users of the replaced database cannot be read; it is unknown which revoked access the restore gives back',
      { error },
    )
    return 'unreadable'
  }
}

/** Returns the outcome of each, in the same order. */
async function reapplyAll(ctx: Ctx, restoredAccess: readonly StoredRestoredAccess[]): Promise<string[]> {
  const { refused } = await reapplyRestoredAccess(ctx, 'all')
  return restoredAccess.map((_, i) => refused.find(({ id }) => id === i + 1)?.detail ?? 'done again')
}

/** Replaces the old file with the new one. At every moment there is a complete database under the live name. */
function swap(files: Files, live: string, built: string, replaced: Replaced): void {
  const dataDir = join(live, '..')
  const safety = safetyCopyOf(live)
  if (replaced !== 'none') {
    const kept = join(built, '..', 'replaced.db')
    files.duplicate(live, kept)
    for (const suffix of SIDE_FILES) files.remove(safety + suffix)
    files.rename(kept, safety)
  }
  for (const suffix of SIDE_FILES) {
    if (!existsSync(live + suffix)) continue
    // Only an unreadable database leaves such files. SQLite would apply them to the new file.
    if (replaced === 'unreadable') files.rename(live + suffix, safety + suffix)
    else files.remove(live + suffix)
  }
  if (hasSideFiles(live)) throw new Error(`${live} still has a write-ahead log`)
  files.sync(dataDir)
  files.rename(built, live)
}
