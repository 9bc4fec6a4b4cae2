import { adoptNewest, messageOf } from '../../app/system/backup/scheduled.ts'
import { forgetFutureRuns, readBackupSchedule, recordScheduledRun } from '../../app/system/backup/settings.ts'
import { AppError } from '../../app/http/errors.ts'
import { beginScheduled, continueBackup, edgeBackups, type EdgeNeeds } from './backups.ts'

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
