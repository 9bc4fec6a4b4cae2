import type { Pause } from '../base/pacing/slices.ts'
import { forgetAlerts } from '../alerts/forget.ts'
import { deleteTrimmed } from '../audit/chain.ts'
import { deleteOldRuns } from '../automation/runs.ts'
import type { Ports } from '../base/context.ts'
import { forgetKeys } from '../http/idempotency.ts'
import { expireOutbox, OUTBOX_AGE_MS } from '../mesh/ingest/outbox.ts'
import { endExpiredClaims } from '../mesh/radios/source-table.ts'
import { fadeSuspicions } from '../mesh/nodes/identity/suspicions.ts'
import { sweepForgotten } from '../mesh/nodes/deletion/forgotten.ts'
import { followRenumbered } from '../mesh/nodes/identity/renumbering.ts'
import { enforceRowQuotas } from './row-quotas.ts'
import { deleteExpired, retentionCutoffs, type Shares } from './retention.ts'
import { oldestUnsummarised, rollUp } from '../mesh/telemetry/roll-up.ts'
import { listLags } from '../base/pacing/sweeps.ts'
import { type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import { forgetSurplusNodes } from '../mesh/nodes/deletion/surplus.ts'
import { deleteOldTraffic } from './traffic-retention.ts'
import { readSettings } from '../settings/settings.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'

/**
 * Updates derived data: hourly and daily summaries of measurements, nodes that continue under another number, the
 * remains of deleted nodes, and which nodes are radios of the service.
 */
export async function keepUp(
  ports: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
  /** Measurements of hours that begin later are summarised another time. */
  before?: number,
): Promise<void> {
  await endExpiredClaims(ports.store, ports.now())
  let goesOn = true
  const watched = async () => {
    goesOn = await pause()
    return goesOn
  }
  const hours = await rollUp(ports.store, watched, share, before)
  if (hours > 0) ports.log.debug('Measurements rolled up', { hours })
  if (goesOn) await followRenumbered(ports, watched, share)
  const swept = goesOn ? await sweepForgotten(ports.store, watched, share) : 0
  if (swept > 0) ports.log.debug('History of forgotten nodes deleted', { rows: swept })
}

/** If deletion is this much behind the settings, the log says so. */
const LATE_MS = DAY_MS

/**
 * Deletes data that the settings no longer keep. Measurements are summarised before they are deleted: those of hours
 * that are not summarised yet stay. `shares` as for `deleteExpired`.
 */
export async function deleteOld(
  { store, log, now }: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
  shares: Shares = {},
): Promise<void> {
  const settings = await readSettings(store)
  const own = () => shares.each?.() ?? pause
  let isUpToDate = true
  const watched = async () => (isUpToDate = await pause())
  if (shares.each === undefined) await rollUp(store, watched, share)
  if (!isUpToDate) return
  const cutoffs = retentionCutoffs(settings, now())
  const unsummarised = await oldestUnsummarised(store)
  const telemetry = Math.min(cutoffs.telemetry, unsummarised ?? cutoffs.telemetry)
  // Needed if a collector is no longer configured. A running one does this itself, and earlier.
  const undelivered = await expireOutbox(store, now() - OUTBOX_AGE_MS - HOUR_MS, own())
  const deleted = {
    undelivered,
    ...(await deleteExpired(store, { ...cutoffs, telemetry }, pause, share, shares)),
    ...(await deleteOldTraffic(store, settings, { now: now(), pause, share, ...shares })),
    trimmedAuditEntries: await deleteTrimmed(store, own()),
    automationRuns: await deleteOldRuns(store, now(), own()),
    alerts: await forgetAlerts(store, now(), own()),
    suspicions: await fadeSuspicions(store, now(), own()),
    idempotencyKeys: await forgetKeys(store, now(), own()),
  }
  if (Object.values(deleted).some((rows) => rows > 0)) log.info('Old data deleted', deleted)
  for (const [table, lagMs] of await readRetentionLags({ store, now })) {
    if (lagMs > LATE_MS) log.warn('Old data is deleted too slowly', { table, hours: Math.floor(lagMs / HOUR_MS) })
  }
}

/** How much longer than the settings say each table keeps its rows, in milliseconds, as far as it was measured. */
export async function readRetentionLags({
  store,
  now,
}: Pick<Ports, 'store' | 'now'>): Promise<ReadonlyMap<string, number>> {
  const settings = await readSettings(store)
  const { telemetry, positions } = retentionCutoffs(settings, now())
  const hourly = now() - settings.telemetryHourlyRetentionDays * DAY_MS
  return listLags(store, { telemetry, positions, telemetry_hourly: hourly })
}

/**
 * Deletes rows beyond the limits of this service, first those of the most active senders and of those known for the
 * shortest time.
 */
export async function keepBounds(
  { store, log, now }: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<void> {
  let goesOn = true
  const watched = async () => (goesOn = goesOn && (await pause()))
  const nodes = await forgetSurplusNodes(store, watched, { now: now(), share })
  const rows = goesOn ? await enforceRowQuotas(store, watched, { now: now(), share }) : {}
  const deleted = { nodes, ...rows }
  if (Object.values(deleted).some((rows) => rows > 0)) log.info('Surplus deleted', deleted)
}
