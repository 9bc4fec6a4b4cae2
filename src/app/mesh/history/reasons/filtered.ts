import { desc, eq, sql } from 'drizzle-orm'
import { newcomers, packets, sources } from '../../../../db/schema.ts'
import { prepareOnce } from '../../../../db/store.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import { lastHearingOf, type Receiver } from '../receivers.ts'
import { ofVisibleNodes, visibleValues } from '../../../accounts/access/visible.ts'
import type { Case, Found } from './case.ts'

/** Packets of the log that are looked at, the latest, and those of the node before its silence. */
const LATEST = 20_000
const BEFORE = 50
/** A collector that delivered fewer packets since then says nothing. */
const FEW = 100
/** The share of what the node sent that must be missing from everybody. */
const MOST = 0.8

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  setAside: db
    .select({ n: sql<number>`count(*)`, since: sql<number | null>`min(x.t)` })
    .from(
      sql`(select t from ${packets} where from_node_num in (select value from json_each(${value('nums')}))
        and t > ${value('since')} and trust_level = 'spoofed' and ${ofVisibleNodes(packets.toNodeNum)} order by id desc limit ${sql.raw(String(FEW))}) x`,
    )
    .prepare(),
  refused: db
    .select({ source: sources.name, refused: newcomers.refused, hour: newcomers.hour })
    .from(newcomers)
    .innerJoin(sources, eq(sources.id, newcomers.sourceId))
    .where(sql`${newcomers.refused} > 0`)
    .prepare(),
  sent: db
    .select({ port: packets.port })
    .from(packets)
    .where(
      sql`${packets.fromNodeNum} in (select value from json_each(${value('nums')}))
        and ${packets.sourceId} = ${value('sourceId')}`,
    )
    .orderBy(desc(packets.id))
    .limit(BEFORE)
    .prepare(),
  delivered: db
    .select({ port: sql<number | null>`x.port`, n: sql<number>`count(*)` })
    .from(
      sql`(select source_id, port, t from ${packets} order by id desc limit ${sql.raw(String(LATEST))}) x
        where x.source_id = ${value('sourceId')} and x.t > ${value('since')}`,
    )
    .groupBy(sql`x.port`)
    .prepare(),
}))

/** What this service, or a collector that delivers to it, leaves out of what arrives. */
export async function lookAtFilters(silence: Case): Promise<Found[]> {
  return [
    ...(await lookAtSetAside(silence)),
    ...(await lookAtRemoved(silence)),
    ...(await lookAtCollectors(silence)),
    ...(await lookAtNewcomers(silence)),
  ]
}

/** Packets in its name arrive, and are set aside because somebody else seems to have sent them. */
async function lookAtSetAside({ ctx, nums, lastHeard }: Case): Promise<Found[]> {
  const found = await queries(ctx.store).setAside.get({
    nums: JSON.stringify(nums),
    since: lastHeard,
    ...visibleValues(ctx.viewer.view),
  })
  if (found === undefined || found.since === null) return []
  const evidence = { by: 'suspicion' as const, source: null, packets: found.n, since: found.since }
  return [{ weight: 94, reason: { kind: 'filtered', isLikely: true, ...evidence } }]
}

/** What heard it is no longer a connection of this service, which has others. */
async function lookAtRemoved({ ctx, lastHeard, pause, receivers }: Case): Promise<Found[]> {
  const links = new Set((ctx.radio?.links() ?? []).map(({ name }) => name))
  const gone = new Map<string, Receiver>()
  for (const receiver of links.size === 0 ? [] : receivers) {
    const { kind, source } = receiver
    if (kind === 'ingest' || links.has(source)) continue
    const heard = await lastHearingOf(ctx, receiver)
    if (heard !== null && heard <= lastHeard + Math.max(pause, HOUR_MS)) gone.set(source, receiver)
  }
  const isLikely = receivers.every(({ source }) => gone.has(source))
  return Array.from(gone.values(), ({ source, lastAt }) => ({
    weight: isLikely ? 93 : 54,
    reason: { kind: 'filtered', isLikely, by: 'removed', source, packets: null, since: lastAt },
  }))
}

/** A collector delivers from nobody any more what this node mostly sent. */
async function lookAtCollectors({ ctx, nums, lastHeard, receivers }: Case): Promise<Found[]> {
  const collectors = new Map(receivers.flatMap((each) => (each.kind === 'ingest' ? [[each.sourceId, each]] : [])))
  const found: Found[] = []
  for (const [sourceId, { source }] of collectors) {
    const { sent, delivered } = queries(ctx.store)
    const ports = (await sent.all({ nums: JSON.stringify(nums), sourceId })).map(({ port }) => port)
    const since = await delivered.all({ sourceId, since: lastHeard })
    const total = since.reduce((sum, { n }) => sum + n, 0)
    const missing = ports.filter((port) => !since.some((each) => each.port === port)).length
    if (total < FEW || ports.length === 0 || missing < ports.length * MOST) continue
    const evidence = { by: 'collector' as const, source, packets: null, since: lastHeard }
    found.push({ weight: 80, reason: { kind: 'filtered', isLikely: false, ...evidence } })
  }
  return found
}

/** If it goes on under another number, that may be one of those which were too many. */
async function lookAtNewcomers({ ctx, lastHeard, receivers }: Case): Promise<Found[]> {
  const names = new Set(receivers.map(({ source }) => source))
  return (await queries(ctx.store).refused.all()).flatMap(({ source, refused, hour }): Found[] => {
    const since = hour * HOUR_MS
    if (!names.has(source) || since + HOUR_MS <= lastHeard) return []
    return [
      { weight: 35, reason: { kind: 'filtered', isLikely: false, by: 'newcomers', source, packets: refused, since } },
    ]
  })
}
