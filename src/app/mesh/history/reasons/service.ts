import { eq, sql } from 'drizzle-orm'
import { nodes } from '../../../../db/schema.ts'
import { prepareOnce } from '../../../../db/store.ts'
import { formatNodeId } from '../../../../meshtastic/node-id.ts'
import { isOwnKind } from '../../../../shared/mesh/link-kinds.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../shared/time.ts'
import { isClockTrusted } from '../../../base/pacing/clock.ts'
import { packetFrom } from '../../topology/last-packet.ts'
import { lastHearingOf, type Receiver } from '../receivers.ts'
import { namesOf } from './names.ts'
import type { Case, Found } from './case.ts'

/** A receiver that heard nothing for this long has fallen silent. */
const QUIET_MS = 30 * MINUTE_MS
/** Receivers that heard the node this long before its silence count. */
const COUNTED_MS = 7 * DAY_MS

const queries = prepareOnce((db) => ({
  telemetryTime: db
    .select({ t: nodes.telemetryTime })
    .from(nodes)
    .where(eq(nodes.nodeNum, sql.placeholder('nodeNum')))
    .prepare(),
}))

/** Reasons on our side: what received it, what we ignore, the clock, and what is no longer kept. */
export async function lookAtService(silence: Case): Promise<Found[]> {
  const { ctx, node, lastHeard, now } = silence
  const found: Found[] = [...(await lookAtReceivers(silence)), ...(await lookAtClocks(silence))]
  if (node.isIgnored) found.push({ weight: 96, reason: { kind: 'ignored', isLikely: true } })
  const oldest = await packetFrom(ctx.store, 0)
  if (oldest !== undefined && oldest.t > lastHeard && lastHeard <= now)
    found.push({ weight: 30, reason: { kind: 'retention', isLikely: false, since: oldest.t } })
  return found
}

async function lookAtClocks({ ctx, node, lastHeard, now }: Case): Promise<Found[]> {
  if (lastHeard > now + MINUTE_MS)
    return [{ weight: 98, reason: { kind: 'clock', isLikely: true, whose: 'service', ahead: lastHeard - now } }]
  if (!isClockTrusted(ctx))
    return [{ weight: 78, reason: { kind: 'clock', isLikely: false, whose: 'service', ahead: null } }]
  const own = (await queries(ctx.store).telemetryTime.get({ nodeNum: node.nodeNum }))?.t ?? null
  if (own === null || Math.abs(own - lastHeard) < DAY_MS) return []
  // A node that is ahead shows in its newest time; one that is behind in a time long before it was heard.
  return [{ weight: 40, reason: { kind: 'clock', isLikely: false, whose: 'node', ahead: own - lastHeard } }]
}

type Judged = { readonly receiver: Receiver; readonly stoppedAt: number | null; readonly state: string | null }

async function lookAtReceivers({ ctx, lastHeard, now, pause, receivers }: Case): Promise<Found[]> {
  const links = ctx.radio?.links() ?? []
  const counted = receivers.filter(({ lastAt }) => lastAt >= lastHeard - COUNTED_MS)
  const judged: Judged[] = []
  for (const receiver of counted) {
    const link = links.find(({ name }) => name === receiver.source)
    const heard = await lastHearingOf(ctx, receiver)
    judged.push({ receiver, stoppedAt: heard, state: link?.state ?? null })
  }
  const isGone = ({ stoppedAt, state, receiver }: Judged) => {
    const isQuiet =
      stoppedAt !== null && now - stoppedAt > QUIET_MS && stoppedAt <= lastHeard + Math.max(pause, HOUR_MS)
    // A collector or a gateway has no connection of ours.
    const isOff = receiver.gateway === null && isOwnKind(receiver.kind) && state !== null && state !== 'connected'
    return isQuiet || (isOff && (stoppedAt ?? 0) <= lastHeard + Math.max(pause, HOUR_MS))
  }
  const gone = judged.filter(isGone)
  const isAll = gone.length === judged.length
  const names = await namesOf(
    ctx,
    gone.flatMap(({ receiver }) => receiver.gateway ?? []),
  )
  const told = new Set<string>()
  return gone.flatMap(({ receiver, stoppedAt, state }): Found[] => {
    const { source, gateway, kind } = receiver
    const isLikely = isAll
    const weight = isAll ? 92 : 55
    const isBroker = kind === 'mqtt'
    const isLinkDown = isBroker && state !== 'connected'
    if (gateway !== null && !isLinkDown) {
      const evidence = { nodeNum: gateway, nodeId: formatNodeId(gateway), name: names.get(gateway) ?? null }
      return [{ weight, reason: { kind: 'gateway', isLikely, ...evidence, source, since: stoppedAt ?? lastHeard } }]
    }
    if (told.has(source)) return []
    told.add(source)
    return [{ weight, reason: { kind: isBroker ? 'broker' : 'radio', isLikely, source, since: stoppedAt, state } }]
  })
}
