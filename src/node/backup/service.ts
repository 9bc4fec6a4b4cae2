import type { Backups, Restores } from '../../app/system/backup/backup.ts'
import type { PasswordHasher } from '../../app/accounts/passwords/hasher.ts'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../../app/config/config.ts'
import type { Ports } from '../../app/base/context.ts'
import type { Log } from '../../app/base/log.ts'
import { recordFailedRestore } from '../../app/system/restore/staging.ts'
import type { Store } from '../../db/store.ts'
import { type Clock, systemClock } from '../clock.ts'
import { consoleContext } from '../console-context.ts'
import { MIGRATIONS_DIR } from '../database.ts'
import { forgetInstances } from '../instances/file.ts'
import { readAppVersion } from '../version.ts'
import { type BackupOptions, type BackupStore, openBackups } from './backups.ts'
import { type NodeCopies, openCopies } from './copies/copies.ts'
import type { Encrypted, EncryptionJob } from './copies/encrypt.ts'
import { RestoreRefused } from '../../app/system/backup/format/damage.ts'
import { diskFiles } from './folder/files.ts'
import { runJob } from './jobs.ts'
import { isDiskFull } from '../disk/error-code.ts'
import { databaseLockFile, type Lock, lockExclusively, lockShared } from './folder/lock.ts'
import { latestTag } from '../migrations.ts'
import { recoverRestore, restoreAtStart, type RestoreOptions } from './restore/restore.ts'
import { openRestores } from './restore/restores.ts'
import { forgetBegun, performStaged } from './restore/staged.ts'
import type { Supervisor } from '../supervisor/systemd.ts'
import { createAlarm, createScheduler } from './schedule/scheduler.ts'

const LOCK_WAIT_MS = 5000
const LOG_INTERVAL_MS = 10_000
const RESTORING = 'Restoring a backup'

/** The database file of a data directory. */
export const databaseFile = (config: Config): string => join(config.DATA_DIR, 'mesh.db')

/**
 * Call it before the database is opened. Finishes an interrupted restore, and performs the staged one or that in
 * RESTORE_FROM_BACKUP. Returns the lock that keeps the database from being replaced while it is open, and `report`,
 * which records in the opened database why a staged restore failed. Throws RestoreRefused.
 */
export async function settleDatabase(
  config: Config,
  log: Log,
  supervisor: Pick<Supervisor, 'starting'>,
): Promise<{ readonly lock: Lock; readonly report: (store: Store) => Promise<void> }> {
  const logProgress = progressLog(log)
  const onProgress = (rows: number, of: number) => {
    supervisor.starting(RESTORING, `${rows} of ${of} rows`)
    logProgress(rows, of)
  }
  const options = { ...restoreOptions(config, log), onProgress }
  recoverRestore(options)
  const failed = await performStaged(options, config.RESTORE_FROM_BACKUP !== null)
  if (config.RESTORE_FROM_BACKUP !== null) {
    supervisor.starting(RESTORING)
    await restoreAtStart(options, config.RESTORE_FROM_BACKUP)
  }
  forgetDead(config.DATA_DIR)
  const lock = lockShared(databaseLockFile(config.DATA_DIR), LOCK_WAIT_MS)
  if (lock === null)
    throw new RestoreRefused(`A restore is under way in ${config.DATA_DIR}; start again when it is done`)
  const report = async (store: Store) => {
    if (failed === null) return
    try {
      const context = { store, ip: null, requestId: null, viewer: null, now: systemClock.now }
      await recordFailedRestore(context, failed)
      forgetBegun(config.DATA_DIR)
    } catch (error) {
      log.error('The failure of a staged restore could not be recorded; the next start tries again', { error })
    }
  }
  return { lock, report }
}

/** Every running process shares the lock: if it can be taken exclusively, all others have ended. */
function forgetDead(dataDir: string): void {
  const alone = lockUnlessFull(databaseLockFile(dataDir))
  if (alone === null) return
  try {
    forgetInstances(dataDir)
  } finally {
    alone.release()
  }
}

/** A full disk prevents this lock. Leftovers then expire by their age. */
function lockUnlessFull(file: string): Lock | null {
  try {
    return lockExclusively(file)
  } catch (error) {
    if (isDiskFull(error)) return null
    throw error
  }
}

/** A long restore logs its progress from time to time. */
function progressLog(log: Log): (rows: number, of: number) => void {
  let loggedAt = systemClock.now()
  return (rows, of) => {
    if (systemClock.now() - loggedAt < LOG_INTERVAL_MS) return
    loggedAt = systemClock.now()
    log.info('Restore under way', { rows, of })
  }
}

// Reapplying changes writes back hashes without creating any, so it needs no native code.
const NO_PASSWORDS: PasswordHasher = { hash: noHash, verify: noHash }

async function noHash(): Promise<never> {
  throw new Error('a restore hashes no password')
}

export function restoreOptions(config: Config, log: Log): RestoreOptions {
  return {
    dataDir: config.DATA_DIR,
    database: databaseFile(config),
    migrations: MIGRATIONS_DIR,
    secrets: config.SESSION_SECRET,
    requireSignature: config.RESTORE_REQUIRE_SIGNATURE,
    allowUnsigned: config.RESTORE_UNSIGNED === 'yes',
    reapply: config.RESTORE_REAPPLY ? (store) => consoleContext({ config, store, log, passwords: NO_PASSWORDS }) : null,
    log,
    now: systemClock.now,
  }
}

export function backupOptions(config: Config, log: Log): BackupOptions {
  return {
    dataDir: config.DATA_DIR,
    database: databaseFile(config),
    schema: latestTag(MIGRATIONS_DIR),
    migrations: MIGRATIONS_DIR,
    appVersion: readAppVersion(),
    timeZone: timeZoneOf(config),
    secrets: config.SESSION_SECRET,
    log,
    now: systemClock.now,
  }
}

function timeZoneOf(config: Config): string {
  return config.TZ ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** The Backups port of a service: the directory and its schedule, which `start` starts. */
export function serveBackups({
  config,
  store,
  log,
  clock,
  mayRun,
  restartBy,
  restart,
}: Pick<Ports, 'config' | 'store' | 'log'> &
  Pick<Restores, 'restartBy' | 'restart'> & { readonly clock: Clock; readonly mayRun: () => boolean }): {
  readonly port: Backups & Pick<BackupStore, 'running'>
  readonly restores: Restores
  readonly copies: NodeCopies
  readonly start: () => Promise<void>
  /** Stops scheduled runs until the next `start`. */
  readonly stop: () => void
  /** Aborts a running backup and leaves nothing of it. */
  readonly close: () => Promise<void>
} {
  const backups = openBackups(backupOptions(config, log))
  const ports = { store, log, now: clock.now }
  const { start, stop, ...schedule } = createScheduler({
    backups,
    ports,
    timeZone: timeZoneOf(config),
    alarm: createAlarm(clock),
    mayRun,
  })
  const restores = openRestores({ ...restoreOptions(config, log), verify: backups.verify, restartBy, restart })
  const copies = openCopies({
    store,
    config,
    log,
    dataDir: config.DATA_DIR,
    timeZone: timeZoneOf(config),
    clock,
    files: diskFiles,
    encrypt: encryptInThread,
    places: { wait },
    mayRun,
  })
  return { port: { ...backups, ...schedule }, restores, copies, start, stop, close: backups.close }
}

async function encryptInThread(job: EncryptionJob, signal: AbortSignal): Promise<Encrypted> {
  const done = await runJob({ kind: 'encryption', job }, signal, () => {})
  if (done.kind !== 'encryption') throw new Error('not an encryption')
  return done.encrypted
}
