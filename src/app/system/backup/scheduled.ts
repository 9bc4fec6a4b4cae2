import type { Log } from '../../base/log.ts'
import { type BackupContext, deleteBackup, demandBackups } from './backups.ts'
import { nextRun } from './next-run.ts'
import { expiredBackups } from './retention.ts'
import type { BackupSchedule } from './schedule.ts'
import { readBackupSchedule, recordScheduledRun } from './settings.ts'

/** When the schedule runs next: now when a run is due, null when it is off. */
export function dueAt({ settings, run }: BackupSchedule, now: number, timeZone: string): number | null {
  if (!settings.enabled) return null
  return nextRun(now, {
    timeZone,
    time: settings.backupTime,
    since: settings.since,
    succeededAt: run?.succeededAt ?? null,
    failed: run !== null && !run.ok ? { at: run.at, count: run.failures } : null,
  })
}

/**
 * Deletes only scheduled backups, oldest first, and goes on after those that it cannot delete: call it after a success.
 * Returns the first error message, or null.
 */
export async function pruneBackups(ctx: BackupContext, log: Log, timeZone: string): Promise<string | null> {
  let first: string | null = null
  const orSay = async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      log.error('Old backups could not be deleted', { error })
      first ??= `Old backups could not be deleted: ${messageOf(error)}`
    }
  }
  await orSay(async () => {
    const { settings } = await readBackupSchedule(ctx.store)
    const all = await demandBackups(ctx).list()
    for (const name of expiredBackups(all, settings, ctx.now(), timeZone).toReversed()) {
      await orSay(async () => {
        await deleteBackup(ctx, name, 'retention')
        log.info('Backup deleted', { name, reason: 'retention' })
      })
    }
  })
  return first
}

/**
 * A restored database may have recorded fewer runs than there are backups. Today's backup must not be made twice.
 */
export async function adoptNewest(ctx: BackupContext): Promise<void> {
  const { run } = await readBackupSchedule(ctx.store)
  const newest = (await demandBackups(ctx).list()).find(({ kind }) => kind === 'scheduled')
  if (newest === undefined || newest.createdAt > ctx.now() || newest.createdAt <= (run?.at ?? 0)) return
  await recordScheduledRun(ctx, { at: newest.createdAt, ok: true, error: null })
}

export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}
