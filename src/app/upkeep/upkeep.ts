import type { Pause } from '../base/slices.ts'
import { forgetAlerts } from '../alerts/forget.ts'
import { deleteTrimmed } from '../audit/chain.ts'
import { deleteOldRuns } from '../automation/runs.ts'
import type { Ports } from '../base/context.ts'
import { forgetKeys } from '../http/idempotency.ts'
import { expireOutbox, OUTBOX_AGE_MS } from '../mesh/ingest/outbox.ts'
import { endExpiredClaims } from '../mesh/radios/source-table.ts'
import { fadeSuspicions } from '../mesh/nodes/suspicions.ts'
import { sweepForgotten } from '../mesh/nodes/forgotten.ts'
import { followRenumbered } from '../mesh/nodes/renumbering.ts'
import { enforceRowQuotas } from './row-quotas.ts'
import { deleteExpired, retentionCutoffs } from './retention.ts'
import { rollUp } from '../mesh/telemetry/roll-up.ts'
import { type Share, wholeSlices } from '../base/slice-share.ts'
import { forgetSurplusNodes } from '../mesh/nodes/surplus.ts'
import { deleteOldTraffic } from './traffic-retention.ts'
import { readSettings } from '../settings/settings.ts'
import { HOUR_MS } from '../../shared/time.ts'

/**
 * Updates derived data: hourly and daily summaries of measurements, nodes that continue under another number, the
 * remains of deleted nodes, and which nodes are radios of the service.
 */
export async function keepUp(
  ports: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<void> {
  await endExpiredClaims(ports.store, ports.now())
  let goesOn = true
  const watched = async () => {
    goesOn = await pause()
    return goesOn
  }
  const hours = await rollUp(ports.store, watched, share)
  if (hours > 0) ports.log.debug('Measurements rolled up', { hours })
  if (goesOn) await followRenumbered(ports, watched, share)
  const swept = goesOn ? await sweepForgotten(ports.store, watched, share) : 0
  if (swept > 0) ports.log.debug('History of forgotten nodes deleted', { rows: swept })
}

/**
 * Deletes data that the settings no longer keep. Measurements are summarised before they are deleted: if `pause` ends
 * the summary, nothing is deleted this time.
 */
export async function deleteOld(
  { store, log, now }: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<void> {
  const settings = await readSettings(store)
  let goesOn = true
  await rollUp(
    store,
    async () => {
      goesOn = await pause()
      return goesOn
    },
    share,
  )
  if (!goesOn) return
  // For a collector that is no longer configured. A running one does this itself, and earlier.
  const undelivered = await expireOutbox(store, now() - OUTBOX_AGE_MS - HOUR_MS, pause)
  const deleted = {
    undelivered,
    ...(await deleteExpired(store, retentionCutoffs(settings, now()), pause, share)),
    ...(await deleteOldTraffic(store, settings, { now: now(), pause, share })),
    trimmedAuditEntries: await deleteTrimmed(store, pause),
    automationRuns: await deleteOldRuns(store, now(), pause),
    alerts: await forgetAlerts(store, now(), pause),
    suspicions: await fadeSuspicions(store, now(), pause),
    idempotencyKeys: await forgetKeys(store, now(), pause),
  }
  if (Object.values(deleted).some((rows) => rows > 0)) log.info('Old data deleted', deleted)
}

/**
 * Deletes rows beyond the limits of this service: first those of the most active senders and of those known for the
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
