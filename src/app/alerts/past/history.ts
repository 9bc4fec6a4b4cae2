import { and, asc, desc, eq, gte, isNull, lt, sql } from 'drizzle-orm'
import { hasPages, packetsWithin } from '../../../db/packet-log.ts'
import { entriesOf, hasRuns, measurementOf, RUNS, timeOf } from '../../../db/runs.ts'
import { auditLog, metrics, packets, positions } from '../../../db/schema.ts'
import type { HEARD_BY } from '../../../shared/alerts/alert-kinds.ts'
import type { Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { rangeOf } from '../../search/walk.ts'
import type { HeardAt } from './gaps.ts'

/** Rows that are read before other work gets its turn. */
const SLICE = 5000
const MAX_POINTS = 20_000
/** The latest packets, which a large log has in a part of a day: more would not fit into the memory of a small machine. */
const MAX_HEARD = 500_000

/** The latest receptions of nodes since a time, oldest first; `radios`: only those off the air. */
export async function readHeard(
  store: Store,
  since: number,
  by: (typeof HEARD_BY)[number] = 'any',
): Promise<HeardAt[]> {
  const isByEar = by === 'radios' ? and(eq(packets.viaMqtt, false), isNull(packets.gateway)) : undefined
  const all: HeardAt[] = []
  const read = async (before: number, log: typeof packets | ReturnType<typeof packetsWithin>) => {
    const rows = await store.db
      .select({ id: packets.id, from: packets.fromNodeNum, t: packets.t, replayed: packets.replayed })
      .from(log)
      .where(and(lt(packets.id, before), isByEar))
      .orderBy(desc(packets.id))
      .limit(SLICE)
      .all()
    for (const { from, t, replayed } of rows) if (!replayed && t >= since) all.push({ from, t })
    return rows
  }
  const isPacked = await hasPages(store)
  const range = isPacked ? await rangeOf(store, 'packet_log') : { from: 0, before: Number.MAX_SAFE_INTEGER }
  for (let { before } = range; ;) {
    const first = Math.max(range.from, before - SLICE)
    const rows = await read(before, isPacked ? packetsWithin(first, before) : packets)
    const last = rows.at(-1)
    const isEnd = isPacked ? first <= range.from : rows.length < SLICE
    if (isEnd || (last !== undefined && last.t < since) || all.length >= MAX_HEARD)
      return all.toSorted((a, b) => a.t - b.t)
    before = isPacked ? first : (last?.id ?? 0)
    await nextTurn()
  }
}

type Reader = Pick<SignedInCtx, 'store' | 'viewer'>

/** Measurements of one node since a time that the viewer may see, oldest first. */
export async function readMeasured({ store, viewer }: Reader, nodeId: number, metric: string, since: number) {
  const id = sql`(select ${metrics.id} from ${metrics} where ${metrics.name} = ${metric})`
  const { v, channel } = measurementOf()
  const range = { node: sql`${nodeId}`, metric: id, from: sql`${since}`, to: sql`${Number.MAX_SAFE_INTEGER}` }
  const packed = entriesOf(RUNS, range)
  const more = (await hasRuns(store))
    ? sql`union all select ${timeOf(RUNS)}, ${v}, ${channel} from ${packed.from} where ${packed.where}`
    : sql``
  const rows = await store.db.all<{ t: number; v: number; channel: number | null }>(
    sql`select t, v, channel from telemetry where node_id = ${nodeId} and metric = ${id} and t >= ${since}
      ${more} order by t limit ${MAX_POINTS}`,
  )
  return rows.filter((row) => canReadChannel(viewer.view, row.channel))
}

/** Positions of one node, as `readMeasured`. */
export async function readPlaces({ store: { db }, viewer }: Reader, nodeId: number, since: number) {
  const { t, latitude, longitude, channel } = positions
  const rows = await db
    .select({ t, latitude, longitude, channel })
    .from(positions)
    .where(and(eq(positions.nodeId, nodeId), gte(t, since)))
    .orderBy(asc(t))
    .limit(MAX_POINTS)
    .all()
  return rows.filter(({ channel }) => canReadChannel(viewer.view, channel))
}

/** The time from which backups count: the first entry of the log, if that is later. */
export async function readPast({ db }: Store, since: number): Promise<number> {
  const first = await db.select({ at: auditLog.timestamp }).from(auditLog).orderBy(asc(auditLog.id)).limit(1).get()
  return Math.max(since, first?.at ?? since)
}
