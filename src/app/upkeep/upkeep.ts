import type { Pause } from '../base/pacing/slices.ts'
import { forgetAlerts } from '../alerts/forget.ts'
import { deleteTrimmed } from '../audit/chain.ts'
import { deleteOldRuns } from '../automation/runs.ts'
import type { Ports } from '../base/context.ts'
import type { Store } from '../../db/store.ts'
import { forgetUnshown } from '../device-config/collected.ts'
import { forgetKeys } from '../http/idempotency.ts'
import { expireOutbox, OUTBOX_AGE_MS } from '../mesh/ingest/outbox.ts'
import { endExpiredClaims } from '../mesh/radios/source-table.ts'
import { fadeSuspicions } from '../mesh/nodes/identity/suspicions.ts'
import { sweepForgotten } from '../mesh/nodes/deletion/forgotten.ts'
import { followRenumbered } from '../mesh/nodes/identity/renumbering.ts'
import { type Bounds, boundsWithin } from '../retention/bounds.ts'
import { plannedBounds, plannedCutoffs, planRetention, promisedCutoffs, readPlans } from '../retention/plan.ts'
import { problemsOf, readRetentionState } from '../retention/state.ts'
import { deleteOldProven } from './proven-packets.ts'
import { enforceRowQuotas } from './row-quotas.ts'
import { deleteExpired, type Shares } from './retention.ts'
import { oldestUnsummarised, rollUp } from '../mesh/telemetry/roll-up.ts'
import { type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import { forgetSurplusNodes } from '../mesh/nodes/deletion/surplus.ts'
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

/** How often the growth of the tables is measured, unless the runtime says otherwise. */
const PLAN_MS = HOUR_MS

/**
 * Deletes data that the settings no longer keep, and the oldest of what would outgrow its bound. Measurements of hours
 * that are not summarised yet stay. `shares` as for `deleteExpired`. Returns whether all of it is done: false if a table
 * used its share up, or `pause` ended the work.
 */
export async function deleteOld(
  { store, log, now }: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
  { each, restMs }: Shares = {},
): Promise<boolean> {
  let isDone = true
  const watch = (inner: Pause): Pause => {
    return async () => {
      const goesOn = await inner()
      isDone &&= goesOn
      return goesOn
    }
  }
  const all = watch(pause)
  const own = () => (each === undefined ? all : watch(each()))
  const shares = { ...(each !== undefined && { each: own }), ...(restMs !== undefined && { restMs }) }
  const settings = await readSettings(store)
  // Rows are counted where each query counts, so that they take their share as a table does.
  const counting = store.packs ? twice(own()) : all
  await planRetention({ store, now: now(), everyMs: Math.max(PLAN_MS, restMs ?? 0) }, all, share, counting)
  const { plans } = await readPlans(store)
  const cutoffs = plannedCutoffs(settings, plans, now())
  const unsummarised = await oldestUnsummarised(store, cutoffs.telemetry)
  const telemetry = Math.min(cutoffs.telemetry, unsummarised ?? cutoffs.telemetry)
  const promised = promisedCutoffs(settings, now())
  const traffic = { ...cutoffs, messages: promised.messages }
  // Needed if a collector is no longer configured. A running one does this itself, and earlier.
  const undelivered = await expireOutbox(store, now() - OUTBOX_AGE_MS - HOUR_MS, own())
  const deleted = {
    undelivered,
    ...(await deleteExpired(store, { ...cutoffs, telemetry }, all, share, shares)),
    ...(await deleteOldTraffic(store, traffic, { pause: all, share, ...shares })),
    provenPackets: await deleteOldProven(store, promised.packets, {
      pause: own(),
      share,
      ...(restMs !== undefined && { restMs }),
    }),
    trimmedAuditEntries: await deleteTrimmed(store, own()),
    automationRuns: await deleteOldRuns(store, now(), own()),
    alerts: await forgetAlerts(store, now(), own()),
    suspicions: await fadeSuspicions(store, now(), own()),
    shownSettings: await forgetUnshown(store, now()),
    idempotencyKeys: await forgetKeys(store, now(), own()),
  }
  if (Object.values(deleted).some((rows) => rows > 0)) log.info('Old data deleted', deleted)
  return isDone
}

/** For slices of three statements where the others have two, and each counts. */
function twice(pause: Pause): Pause {
  return async () => (await pause()) && (await pause())
}

/** Says in the log what is late, kept shorter than set, or large. */
export async function warnOfRetention({ store, log, now }: Pick<Ports, 'store' | 'log' | 'now'>): Promise<void> {
  for (const { message, fields } of problemsOf(await readRetentionState(store, now()))) log.warn(message, fields)
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
  const rows = goesOn
    ? await enforceRowQuotas(store, watched, { now: now(), share, most: await readBounds(store) })
    : {}
  const deleted = { nodes, ...rows }
  if (Object.values(deleted).some((rows) => rows > 0)) log.info('Surplus deleted', deleted)
}

async function readBounds(store: Store): Promise<Partial<Bounds>> {
  const space = await store.space()
  const bounds = plannedBounds(await readSettings(store), (await readPlans(store)).plans, space)
  return boundsWithin(bounds, space?.usedBytes ?? null)
}
