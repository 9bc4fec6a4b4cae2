import { adoptNewest, messageOf } from '../../app/system/backup/scheduled.ts'
import { forgetFutureRuns, readBackupSchedule, recordScheduledRun } from '../../app/system/backup/settings.ts'
import { AppError } from '../../app/http/errors.ts'
import { HOUR_MS } from '../../shared/time.ts'
import { beginScheduled, continueBackup, edgeBackups, type EdgeNeeds, endStuck } from './backups.ts'
import { readWork } from './work.ts'

/** How long old data may stay because of a backup. */
const MAX_REST_MS = 6 * HOUR_MS

/**
 * Old data stays while a backup is made, which would have to keep what it was: but not for ever, if none goes on with it.
 * Gives up one that will not be completed; the run then has no queries left for old data.
 */
export async function isBackingUp(needs: Parameters<typeof endStuck>[0]): Promise<boolean> {
  const work = await readWork(needs.store)
  if (work === null) return false
  return (await endStuck(needs, work)) || (needs.bucket !== null && needs.now() - work.createdAt < MAX_REST_MS)
}

/** The work of the trigger for backups: goes on with one, or begins the one that is due. */
export async function runBackups(needs: EdgeNeeds): Promise<void> {
  if (await continueBackup(needs)) return
  const { store, now } = needs
  const backups = edgeBackups(needs)
  const context = { store, now, ip: null, requestId: null, viewer: null, backups }
  await forgetFutureRuns(context)
  const isDue = async () => {
    const due = await backups.nextRun(await readBackupSchedule(store))
    return due !== null && due <= now()
  }
  if (!(await isDue())) return
  try {
    await adoptNewest(context)
    if (await isDue()) await beginScheduled(needs)
  } catch (error) {
    if (error instanceof AppError && error.code === 'backup_in_progress') return
    needs.log.error('The scheduled backup failed', { error })
    await recordScheduledRun(context, { at: now(), ok: false, error: messageOf(error) })
  }
}
