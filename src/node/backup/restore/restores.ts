import { join } from 'node:path'
import type { Backups, Restores } from '../../../app/system/backup/backup.ts'
import { AppError, DISK_FULL } from '../../../app/http/errors.ts'
import { said } from '../../../app/words/words.ts'
import { isDiskFull } from '../../disk/error-code.ts'
import { BackupDamage, RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import { backupsDirectory, hasBackup } from '../folder/directory.ts'
import { diskFiles } from '../folder/files.ts'
import {
  checkSignature,
  describeBackup,
  type Manifest,
  signingKey,
} from '../../../app/system/backup/format/manifest.ts'
import { readManifest } from '../folder/read-manifest.ts'
import { refuseUnsigned, type RestoreOptions } from './restore.ts'
import { readStage, sweepDrafts, withdrawStage, writeStage } from './stage.ts'

export type RestoresOptions = Pick<
  RestoreOptions,
  'dataDir' | 'secrets' | 'requireSignature' | 'allowUnsigned' | 'log' | 'now' | 'files'
> &
  Pick<Restores, 'restartBy' | 'restart'> &
  Pick<Backups, 'verify'>

/** Stages restores of the backups of a data directory. */
export function openRestores(options: RestoresOptions): Restores {
  const { dataDir, log, now, files = diskFiles, verify, restartBy, restart } = options
  const directory = backupsDirectory(dataDir)
  const keys = options.secrets.map(signingKey)
  sweepDrafts(files, dataDir)

  const inspect = (name: string) => {
    if (!hasBackup(directory, name)) throw new AppError('backup_not_found')
    return orUnusable(() => {
      const manifest = readManifest(join(directory, name))
      return { manifest, signature: checkSignature(manifest, keys) }
    })
  }

  return {
    staged: () => {
      const stage = readStage(dataDir)
      return stage === null ? null : { name: stage.name, stagedAt: stage.stagedAt, by: stage.by }
    },
    preview: async (name) => {
      const { manifest, signature } = inspect(name)
      const rows = rowsOf(manifest)
      const brings = { users: rows('users'), nodes: rows('nodes'), messages: rows('messages') }
      return { backup: describeBackup(name, manifest), signature, brings }
    },
    stage: async (name, by, record) => {
      const { manifest, signature } = inspect(name)
      if (signature !== 'own') orUnusable(() => refuseUnsigned(options, name, signature))
      if (readStage(dataDir) !== null) throw new AppError('restore_staged')
      const { ok, problems } = await verify(name)
      if (!ok) throw unusable(problems[0] ?? '')
      const stage = { name, manifest: manifest.sha256, stagedAt: now(), by }
      if (!writeOrFull(() => writeStage(files, dataDir, stage))) throw new AppError('restore_staged')
      try {
        await record(describeBackup(name, manifest))
      } catch (error) {
        await withdrawStage(files, dataDir, async () => {})
        throw error
      }
      log.info('Restore staged for the next start', { name, by })
    },
    cancel: async (record) => {
      const name = readStage(dataDir)?.name ?? '?'
      if (!(await withdrawStage(files, dataDir, () => record(name)))) {
        throw new AppError('not_found', 'No restore is staged')
      }
      log.info('Staged restore cancelled', { name })
    },
    restartBy,
    restart,
  }
}

function rowsOf({ tables }: Manifest): (table: string) => number {
  return (table) => tables.find(({ name }) => name === table)?.rows ?? 0
}

function orUnusable<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof BackupDamage || error instanceof RestoreRefused) throw unusable(error.message)
    throw error
  }
}

function unusable(why: string): AppError {
  return new AppError('backup_unusable', said('The next start would refuse this backup: {why}', { why }))
}

function writeOrFull(write: () => boolean): boolean {
  try {
    return write()
  } catch (error) {
    if (isDiskFull(error)) throw new AppError('database_unavailable', DISK_FULL, { cause: error })
    throw error
  }
}
