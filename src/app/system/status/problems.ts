import { SYSTEM_PROBLEMS, type SystemProblem } from '../../../shared/system-problems.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import type { Problem, System } from './schema.ts'
import { JOBS } from './runs.ts'

/** A forecast end within this time is a problem. */
const SOON_MS = 14 * DAY_MS
/** With less room a disk fills within days whatever the forecast says. */
const LITTLE_BYTES = 256_000_000
/** A daily backup, with time to make it. */
const OVERDUE_MS = DAY_MS + 2 * HOUR_MS
/** Without a schedule, a backup of this age still counts. */
const RECENT_BACKUP_MS = 7 * DAY_MS
const WAITING_ALERTS_MS = 15 * MINUTE_MS

/** What an administrator should look at, errors first. */
export function findProblems(system: Omit<System, 'problems'>): Problem[] {
  return [...found(system)]
    .map(([code, subject = null]): Problem => ({ code, severity: SYSTEM_PROBLEMS[code], subject }))
    .toSorted((a, b) => RANKS[a.severity] - RANKS[b.severity])
}

const RANKS = { error: 0, warning: 1, info: 2 } as const

function* found(system: Omit<System, 'problems'>): Generator<readonly [SystemProblem, string?]> {
  const { now, storage, retention, backups, links, collector, anchor, instances, queues, clock, runs, release } = system
  if (storage.disk?.isFull === true) yield ['disk_full']
  else if (retention.database.isLarge || isFilling(storage, now)) yield ['disk_filling']
  for (const { table, isLate, reason } of retention.tables) {
    if (isLate) yield ['retention_late', table]
    if (reason !== null) yield ['retention_short', table]
  }
  if (backups !== null) yield* backupProblems(backups, now)
  for (const { name, state, reason } of links) if (state !== 'connected' && reason !== null) yield ['link_down', name]
  if (collector !== null && collector.reason !== null) yield ['collector_failing', collector.target]
  if (anchor !== null && anchor.failures > 0) yield ['anchor_failing']
  if (queues.alertsFailingSince !== null && now - queues.alertsFailingSince > WAITING_ALERTS_MS)
    yield ['alerts_waiting']
  if (clock !== null && clock.state !== 'confirmed') yield ['clock_wrong']
  if (instances !== null && !instances.some(({ hasLease }) => hasLease)) yield ['nobody_on_duty']
  for (const { job, at, ok } of runs) if (!ok || now - at > JOBS[job]) yield ['job_late', job]
  if (release?.isNewer === true && release.latest !== null) yield ['release_newer', release.latest]
}

function isFilling({ roomBytes, forecast }: System['storage'], now: number): boolean {
  if (forecast !== null && forecast.fullAt !== null && forecast.fullAt - now < SOON_MS) return true
  return roomBytes !== null && roomBytes < LITTLE_BYTES
}

function* backupProblems(backups: NonNullable<System['backups']>, now: number): Generator<readonly [SystemProblem]> {
  const { enabled, lastRun, lastSuccessAt, since, last, restoreError } = backups
  if (restoreError !== null) yield ['restore_failed']
  if (enabled && lastRun?.ok === false) yield ['backup_failed']
  else if (enabled && now - Math.max(lastSuccessAt ?? 0, since) > OVERDUE_MS) yield ['backup_overdue']
  if (!enabled && (last === null || now - last.createdAt > RECENT_BACKUP_MS)) yield ['backup_off']
}
