import { existsSync } from 'node:fs'
import type { RestoreOutcome } from '../../../app/system/backup/settings.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { isDiskFull } from '../../disk/error-code.ts'
import { RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import { diskFiles, type Files } from '../folder/files.ts'
import { databaseLockFile, type Lock, lockExclusively } from '../folder/lock.ts'
import { readMarker } from './marker.ts'
import { hasTakenEffect, type RestoreOptions, restoreHolding } from './restore.ts'
import { begunFile, draftIn, readStageFile, type Stage, stagedFile, writeDurably } from './stage.ts'

const UNREADABLE = 'its file cannot be read'
/** What was said to be lost when it was staged must still be about right. */
const MAX_AGE_MS = DAY_MS
const LATE =
  'it was staged more than a day ago, and newer data would be lost that nobody was told about; stage it again'
const INTERRUPTED = 'the service ended in the middle of it; the database is as it was'
const BY_VARIABLE = 'RESTORE_FROM_BACKUP is set, and comes first; the staged restore was dropped'

type FailedRestore = RestoreOutcome & { readonly error: string }

/**
 * Performs the staged restore, once: whatever happens, no later start tries it again. While another process has the
 * database open, it waits for the next start. Returns what failed, to be recorded before `forgetBegun`. Never throws
 * because of the backup.
 */
export async function performStaged(options: RestoreOptions, hasVariable: boolean): Promise<FailedRestore | null> {
  const { dataDir, log, files = diskFiles } = options
  if (!existsSync(stagedFile(dataDir)) && !existsSync(begunFile(dataDir))) return null
  let lock: Lock | null
  try {
    lock = lockExclusively(databaseLockFile(dataDir))
  } catch (error) {
    if (!isDiskFull(error)) throw error
    return fail(options, begin(files, dataDir), 'no space is left on the device; the database is as it was')
  }
  if (lock === null) {
    log.warn('A restore is staged, and waits until no other instance has the database open')
    return null
  }
  try {
    const earlier = existsSync(begunFile(dataDir)) ? settleEarlier(options) : null
    if (!existsSync(stagedFile(dataDir))) return earlier
    const stage = begin(files, dataDir)
    if (stage === null) return fail(options, null, UNREADABLE)
    if (hasVariable) return fail(options, stage, BY_VARIABLE)
    if (options.now() - stage.stagedAt > MAX_AGE_MS) return fail(options, stage, LATE)
    try {
      await restoreHolding({ ...options, stage }, stage.name)
      forgetBegun(dataDir, files)
      return null
    } catch (error) {
      if (hasTakenEffect(dataDir) || restoredStage(dataDir) === stage.id) {
        log.error('The backup is restored, but the disk failed after that; the next start completes it', { error })
        return null
      }
      // Anything else would end each start, and nobody could say so on a page.
      if (!(error instanceof RestoreRefused)) log.error('The staged restore failed', { error })
      return fail(options, stage, error instanceof Error ? error.message : String(error))
    }
  } finally {
    lock.release()
  }
}

/** Takes the staged restore, so that it is begun only once. Null if it cannot be read. */
function begin(files: Files, dataDir: string): Stage | null {
  if (existsSync(stagedFile(dataDir))) files.rename(stagedFile(dataDir), begunFile(dataDir))
  files.sync(dataDir)
  return readStageFile(begunFile(dataDir))
}

/** A start ended in the middle, before or after the new database took effect. */
function settleEarlier(options: RestoreOptions): FailedRestore | null {
  const { dataDir, files = diskFiles } = options
  const stage = readStageFile(begunFile(dataDir))
  if (stage === null) return fail(options, null, UNREADABLE)
  // `recoverRestore` of the next start completes it first.
  if (hasTakenEffect(dataDir)) return null
  if (stage.error !== undefined) return failure(options, stage, stage.error)
  if (restoredStage(dataDir) !== stage.id) return fail(options, stage, INTERRUPTED)
  forgetBegun(dataDir, files)
  return null
}

/** The staged restore that was completed last; null also for an unreadable marker, which must not end the start. */
function restoredStage(dataDir: string): string | null {
  try {
    return readMarker(dataDir)?.stage ?? null
  } catch (error) {
    if (error instanceof RestoreRefused) return null
    throw error
  }
}

function fail(options: RestoreOptions, stage: Stage | null, error: string): FailedRestore {
  const { dataDir, log, files = diskFiles } = options
  log.error(`The staged restore was not done: ${error}`, { name: stage?.name ?? null })
  if (stage !== null) noteError(files, dataDir, { ...stage, error })
  return failure(options, stage, error)
}

function failure({ now }: RestoreOptions, stage: Stage | null, error: string): FailedRestore {
  return { name: stage?.name ?? '?', stagedBy: stage?.by ?? '?', at: now(), error }
}

/** So that the reason is known even if the service ends before it is recorded. */
function noteError(files: Files, dataDir: string, stage: Stage): void {
  const draft = draftIn(dataDir)
  try {
    writeDurably(files, draft, stage)
    files.rename(draft, begunFile(dataDir))
  } catch (error) {
    if (!isDiskFull(error)) throw error
    files.remove(draft)
  }
}

/** The result of the restore that was begun is recorded. */
export function forgetBegun(dataDir: string, files: Files = diskFiles): void {
  files.remove(begunFile(dataDir))
  files.sync(dataDir)
}
