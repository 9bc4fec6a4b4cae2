import { desc, eq, sql, type SQL } from 'drizzle-orm'
import { BY_PLACE, hasPages, LAST_PACKET, packedOf, selectWithin } from '../../../../db/packet-log.ts'
import { newcomers, packets, sources } from '../../../../db/schema.ts'
import { type Db, prepareOnce } from '../../../../db/store.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import { lastPacketBy } from '../../topology/last-packet.ts'
import { lastHearingOf, type Receiver } from '../receivers.ts'
import { ofVisibleNodes, visibleValues } from '../../../accounts/access/visible.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import type { Case, Found } from './case.ts'

/** Packets of the log that are looked at, the latest, and those of each number of the node since and before its silence. */
const LATEST = 20_000
const LATEST_OF_NUM = 2000
/** Packets that a collector delivered from the node before its silence. */
const BEFORE = 50
/** A collector that delivered fewer packets since then says nothing. */
const FEW = 100
/** The share of what the node sent that must be missing from everybody. */
const MOST = 0.8

/** The same of pages, each of which may have only one. */
const LATEST_OF_NUM_PACKED = 200

const value = sql.placeholder
const { raw } = sql

const ofNum = eq(packets.fromNodeNum, value('num'))

const prepareDelivered = (db: Db, latest: SQL) =>
  db
    .select({ sourceId: sql<number>`x.source_id`, port: sql<number | null>`x.port`, n: sql<number>`count(*)` })
    .from(sql`(${latest}) x where x.t > ${value('since')}`)
    .groupBy(sql`x.source_id, x.port`)
    .prepare()

const queries = prepareOnce((db) => ({
  setAside: db
    .select({ t: sql<number>`x.t` })
    .from(
      sql`(select t, trust_level, to_node_num from ${packets} where from_node_num = ${value('num')} and id > ${value('last')}
        order by id desc limit ${sql.raw(String(LATEST_OF_NUM))}) x
        where x.t > ${value('since')} and x.trust_level = 'spoofed' and ${ofVisibleNodes(sql`x.to_node_num`)}`,
    )
    .limit(FEW)
    .prepare(),
  packedSetAside: db
    .select({ t: packets.t })
    .from(packedOf(value('num'), { first: sql`${value('last')} + 1` }))
    .where(
      sql`${ofNum} and ${packets.t} > ${value('since')} and ${packets.trustLevel} = 'spoofed'
        and ${ofVisibleNodes(packets.toNodeNum)}`,
    )
    .orderBy(BY_PLACE)
    .limit(FEW)
    .prepare(),
  refused: db
    .select({ source: sources.name, refused: newcomers.refused, hour: newcomers.hour })
    .from(newcomers)
    .innerJoin(sources, eq(sources.id, newcomers.sourceId))
    .where(sql`${newcomers.refused} > 0`)
    .prepare(),
  sent: db
    .select({ id: packets.id, sourceId: packets.sourceId, port: packets.port })
    .from(packets)
    .where(sql`${packets.fromNodeNum} = ${value('num')} and ${packets.id} <= ${value('last')}`)
    .orderBy(desc(packets.id))
    .limit(LATEST_OF_NUM)
    .prepare(),
  packedSent: db
    .select({ id: packets.id, sourceId: packets.sourceId, port: packets.port })
    .from(packedOf(value('num'), { last: value('last') }))
    .where(ofNum)
    .orderBy(BY_PLACE)
    .limit(LATEST_OF_NUM_PACKED)
    .prepare(),
  delivered: prepareDelivered(db, sql`select * from packets order by id desc limit ${raw(String(LATEST))}`),
  packedDelivered: prepareDelivered(
    db,
    selectWithin(sql`${LAST_PACKET} - ${raw(String(LATEST))} + 1`, sql`${LAST_PACKET} + 1`),
  ),
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
  const last = await lastPacketBy({ store: ctx.store, now: lastHeard })
  const isPacked = await hasPages(ctx.store)
  const times: number[] = []
  for (const num of nums) {
    const values = { num, last, since: lastHeard, ...visibleValues(ctx.viewer.view) }
    times.push(...(await queries(ctx.store).setAside.all(values)).map(({ t }) => t))
    if (isPacked) times.push(...(await queries(ctx.store).packedSetAside.all(values)).map(({ t }) => t))
    await nextTurn()
  }
  const latest = times.toSorted((a, b) => b - a).slice(0, FEW)
  const since = latest.at(-1)
  if (since === undefined) return []
  const evidence = { by: 'suspicion' as const, source: null, packets: latest.length, since }
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
async function lookAtCollectors(silence: Case): Promise<Found[]> {
  const { ctx, lastHeard, receivers } = silence
  const collectors = new Map(receivers.flatMap((each) => (each.kind === 'ingest' ? [[each.sourceId, each]] : [])))
  if (collectors.size === 0) return []
  const sent = await portsBefore(silence)
  const { delivered: plain, packedDelivered } = queries(ctx.store)
  const latest = await ((await hasPages(ctx.store)) ? packedDelivered : plain).all({ since: lastHeard })
  const delivered = Map.groupBy(latest, (row) => row.sourceId)
  await nextTurn()
  return Array.from(collectors).flatMap(([sourceId, { source }]): Found[] => {
    const ports = sent.get(sourceId)?.slice(0, BEFORE) ?? []
    const since = delivered.get(sourceId) ?? []
    const total = since.reduce((sum, { n }) => sum + n, 0)
    const missing = ports.filter(({ port }) => !since.some((each) => each.port === port)).length
    if (total < FEW || ports.length === 0 || missing < ports.length * MOST) return []
    const evidence = { by: 'collector' as const, source, packets: null, since: lastHeard }
    return [{ weight: 80, reason: { kind: 'filtered', isLikely: false, ...evidence } }]
  })
}

/** What each source delivered from the node before its silence, the latest first. */
async function portsBefore({ ctx, nums, lastHeard }: Case) {
  const last = await lastPacketBy({ store: ctx.store, now: lastHeard })
  const isPacked = await hasPages(ctx.store)
  const rows: { readonly id: number; readonly sourceId: number; readonly port: number | null }[] = []
  for (const num of nums) {
    rows.push(...(await queries(ctx.store).sent.all({ num, last })))
    if (isPacked) rows.push(...(await queries(ctx.store).packedSent.all({ num, last })))
    await nextTurn()
  }
  return Map.groupBy(
    rows.toSorted((a, b) => b.id - a.id),
    ({ sourceId }) => sourceId,
  )
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
