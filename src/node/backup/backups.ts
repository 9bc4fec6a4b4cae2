import type { Backup, BackupKind, BackupProgress, Backups } from '../../app/system/backup/backup.ts'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../app/http/errors.ts'
import type { Log } from '../../app/base/log.ts'
import { createArchiving } from './archiving.ts'
import {
  backupsDirectory,
  deletedName,
  findManifest,
  hasBackup,
  listBackups,
  sweepBackups,
} from './folder/directory.ts'
import { isDiskFull } from '../disk/error-code.ts'
import { diskFiles, type Files } from './folder/files.ts'
import { runJob } from './jobs.ts'
import { backupLockFile, lockExclusively } from './folder/lock.ts'
import { describeBackup, type Manifest, signingKey } from '../../app/system/backup/format/manifest.ts'
import { backupNameAt } from '../../app/system/backup/format/names.ts'
import { partialName, type SnapshotJob, type SnapshotProgress } from './snapshot.ts'
import { backupTables } from '../../app/system/backup/format/tables.ts'

const LOG_INTERVAL_MS = 10_000

export type BackupOptions = {
  readonly dataDir: string
  /** The database file. */
  readonly database: string
  /** Tag of its last migration. */
  readonly schema: string
  /** The folder of all migrations. */
  readonly migrations: string
  readonly appVersion: string
  readonly timeZone: string
  /** The first one signs. */
  readonly secrets: readonly string[]
  readonly log: Log
  readonly now: () => number
  readonly files?: Files
  /** Lets `ms` pass. */
  readonly wait?: (ms: number) => Promise<unknown>
  /** Writes a snapshot, in its own thread except in some tests. */
  readonly snapshot?: Snapshot
}

type Snapshot = (job: SnapshotJob, signal: AbortSignal, onProgress: (at: SnapshotProgress) => void) => Promise<Manifest>

/** The backups of a data directory, for the API; `scheduler.ts` has the schedule. */
export type BackupStore = Omit<Backups, 'nextRun' | 'reschedule' | 'running' | 'create'> & {
  readonly running: () => BackupProgress | null
  readonly create: (kind: BackupKind, record: (backup: Backup) => Promise<void>) => Promise<Backup>
  /** Ends a running backup and deletes its files. */
  readonly close: () => Promise<void>
}

/** Deletes what a crash left behind, then serves the directory. */
export function openBackups(options: BackupOptions): BackupStore {
  const { dataDir, log, now } = options
  const files = options.files ?? diskFiles
  const directory = backupsDirectory(dataDir)
  const keys = options.secrets.map(signingKey)
  const closing = new AbortController()
  const archiving = createArchiving()
  const known: Parameters<typeof listBackups>[1] = new Map()
  let running: BackupProgress | null = null
  let work: Promise<unknown> = Promise.resolve()

  const demandManifest = (name: string): Manifest => {
    const manifest = findManifest(directory, name)
    if (manifest === null) throw new AppError('backup_not_found')
    return manifest
  }

  const write = async (kind: BackupKind): Promise<Backup> => {
    const { name, createdAt } = await freeName(options, directory)
    running = { name, tables: 0, rows: 0 }
    log.info('Backup started', { name, kind })
    const { schema, appVersion, database } = options
    const tables = backupTables()
    const job = { database, directory, name, createdAt, kind, appVersion, schema, tables, signingKey: keys[0] ?? null }
    let logged = now()
    const manifest = await (options.snapshot ?? snapshotInThread)(job, closing.signal, (at) => {
      running = { name, tables: at.tables, rows: at.rows }
      if (now() - logged < LOG_INTERVAL_MS) return
      logged = now()
      log.info('Backup under way', { name, table: at.table, rows: at.rows })
    })
    return describeBackup(name, manifest)
  }

  const create = async (kind: BackupKind, record: (backup: Backup) => Promise<void>): Promise<Backup> => {
    const lock = running === null && !closing.signal.aborted ? lockExclusively(backupLockFile(dataDir)) : null
    if (lock === null) throw new AppError('backup_in_progress')
    running = { name: '', tables: 0, rows: 0 }
    const begun = now()
    try {
      files.makeDirectory(directory)
      const backup = await write(kind)
      await record(backup).catch(async (error: unknown) => {
        await discard(files, directory, backup.name)
        throw error
      })
      const { name, tables, rows, sizeBytes } = backup
      log.info('Backup completed', { name, kind, tables, rows, sizeBytes, ms: now() - begun })
      return backup
    } catch (error) {
      // A terminated thread could not clean up.
      if (running.name !== '') await files.removeLarge(join(directory, partialName(running.name)))
      throw asBackupError(error)
    } finally {
      running = null
      lock.release()
    }
  }

  sweepAtStart(dataDir, directory, files)
  return {
    list: () => listBackups(directory, known),
    find: async (name) => describeBackup(name, demandManifest(name)),
    running: () => running,
    create: (kind, record) => {
      const made = create(kind, record)
      work = made.catch(() => {})
      return made
    },
    remove: (name, record) => removeBackup(files, directory, name, record),
    verify: async (name) => {
      if (!hasBackup(directory, name)) throw new AppError('backup_not_found')
      const against = { keys, migrations: options.migrations }
      const job = { kind: 'inspection' as const, directory: join(directory, name), against }
      const done = await runJob(job, closing.signal, () => {})
      if (done.kind !== 'inspection') throw new Error('not an inspection')
      const { ok, signature } = done.inspection
      log.info('Backup verified', { name, ok, signature })
      return done.inspection
    },
    download: async (name) => archiving.archive(join(directory, name), name, demandManifest(name)),
    close: async () => {
      closing.abort()
      await Promise.all([work, archiving.close()])
    },
  }
}

const snapshotInThread: Snapshot = async (job, signal, onProgress) => {
  const done = await runJob({ kind: 'snapshot', job }, signal, onProgress)
  if (done.kind !== 'snapshot') throw new Error('not a snapshot')
  return done.manifest
}

/** The name for the current second; waits for the next one if it is taken. */
async function freeName(options: BackupOptions, directory: string): Promise<{ name: string; createdAt: number }> {
  for (;;) {
    const createdAt = options.now()
    const name = backupNameAt(createdAt, options.timeZone)
    if (!hasBackup(directory, name)) return { name, createdAt }
    await (options.wait ?? wait)(1000 - (createdAt % 1000))
  }
}

async function removeBackup(files: Files, directory: string, name: string, record: () => Promise<void>): Promise<void> {
  if (!hasBackup(directory, name)) throw new AppError('backup_not_found')
  const from = join(directory, name)
  const to = join(directory, deletedName(name))
  files.remove(to)
  files.rename(from, to)
  try {
    files.sync(directory)
    await record()
  } catch (error) {
    files.rename(to, from)
    throw error
  }
  await files.removeLarge(to)
}

/** Renamed in one step, then deleted. */
async function discard(files: Files, directory: string, name: string): Promise<void> {
  const to = join(directory, deletedName(name))
  files.rename(join(directory, name), to)
  await files.removeLarge(to)
}

function sweepAtStart(dataDir: string, directory: string, files: Files): void {
  const lock = lockExclusively(backupLockFile(dataDir))
  // Another process is creating a backup now; its files are not leftovers.
  if (lock === null) return
  try {
    sweepBackups(directory, files)
  } finally {
    lock.release()
  }
}

function asBackupError(error: unknown): unknown {
  if (!isDiskFull(error)) return error
  return new AppError('internal', 'The backup failed: no space is left on the device. Nothing was changed', {
    cause: error,
  })
}
