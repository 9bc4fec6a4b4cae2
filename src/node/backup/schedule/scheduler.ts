import type { Backups } from '../../../app/system/backup/backup.ts'
import { AppError } from '../../../app/http/errors.ts'
import type { AuditContext } from '../../../app/audit/audit.ts'
import type { Ports } from '../../../app/base/context.ts'
import { forgetFutureRuns, readBackupSchedule, recordScheduledRun } from '../../../app/system/backup/settings.ts'
import { createBackup } from '../../../app/system/backup/backups.ts'
import { type Clock, createTimer } from '../../clock.ts'
import type { BackupStore } from '../backups.ts'
import { adoptNewest, dueAt, messageOf, pruneBackups } from '../../../app/system/backup/scheduled.ts'

/** The longest timer, so that a changed clock or a machine that slept is noticed soon. */
const MAX_TIMER_MS = 60_000
/** The pause while another backup is running. */
const BUSY_RETRY_MS = 60_000

/** A single timer. */
export type Alarm = { set(ms: number, ring: () => Promise<void>): void; clear(): void }

export function createAlarm(clock: Clock): Alarm {
  const timer = createTimer(clock)
  return { set: (ms, ring) => timer.start(ms, () => void ring()), clear: timer.stop }
}

export type Scheduler = Pick<Backups, 'nextRun' | 'reschedule'> & {
  /** Runs due backups and waits for the next. */
  readonly start: () => Promise<void>
  readonly stop: () => void
}

/** Makes scheduled backups, and deletes old ones. */
export function createScheduler(options: {
  readonly backups: BackupStore
  readonly ports: Pick<Ports, 'store' | 'log' | 'now'>
  readonly timeZone: string
  readonly alarm: Alarm
  /** Whether this instance makes the scheduled backups. Checked before each one. Default: yes. */
  readonly mayRun?: () => boolean
}): Scheduler {
  const { backups, ports, alarm, timeZone, mayRun = () => true } = options
  const { log, now } = ports
  let isStopped = true
  let isAtWork = false
  let busyUntil = 0

  const scheduler: Scheduler = {
    nextRun: (schedule) => dueAt(schedule, now(), timeZone),
    reschedule: () => {
      if (!isAtWork) arm(0)
    },
    start: async () => {
      isStopped = false
      await adoptNewest(context)
      arm(0)
    },
    stop: () => {
      isStopped = true
      alarm.clear()
    },
  }
  const context = { ...asSystem(ports), backups: { ...backups, ...scheduler } }

  function ring(): Promise<void> {
    return check().catch((error: unknown) => {
      log.error('The schedule of backups failed', { error })
      arm(MAX_TIMER_MS)
    })
  }

  function arm(ms: number): void {
    if (!isStopped) alarm.set(Math.min(Math.max(ms, 0), MAX_TIMER_MS), ring)
  }

  async function check(): Promise<void> {
    if (isAtWork || isStopped) return
    isAtWork = true
    try {
      await forgetFutureRuns(context)
      const due = dueAt(await readBackupSchedule(ports.store), now(), timeZone)
      if (due !== null && Math.max(due, busyUntil) <= now() && mayRun()) await run()
    } finally {
      isAtWork = false
    }
    const next = dueAt(await readBackupSchedule(ports.store), now(), timeZone)
    arm(next === null ? MAX_TIMER_MS : Math.max(next, busyUntil) - now())
  }

  async function run(): Promise<void> {
    const at = now()
    try {
      await createBackup(context, 'scheduled')
    } catch (error) {
      if (error instanceof AppError && error.code === 'backup_in_progress') {
        busyUntil = at + BUSY_RETRY_MS
        return
      }
      if (isStopped) return
      log.error('The scheduled backup failed', { error })
      await recordScheduledRun(context, { at, ok: false, error: messageOf(error) })
      return
    }
    await recordScheduledRun(context, { at, ok: true, error: await pruneBackups(context, log, timeZone) })
  }

  return scheduler
}

function asSystem({ store, now }: Pick<Ports, 'store' | 'now'>): AuditContext {
  return { store, now, ip: null, requestId: null, viewer: null }
}
