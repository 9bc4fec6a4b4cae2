import { and, asc, desc, eq, gte, isNull, lt, sql } from 'drizzle-orm'
import { entriesOf, hasRuns, measurementOf, RUNS, timeOf } from '../../../db/runs.ts'
import { auditLog, metrics, packets, positions } from '../../../db/schema.ts'
import type { HEARD_BY } from '../../../shared/alerts/alert-kinds.ts'
import type { Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import type { HeardAt } from './gaps.ts'

/** Rows that are read before other work gets its turn. */
const SLICE = 5000
const MAX_POINTS = 20_000
/** The latest packets, which a large log has in a part of a day: more would not fit into the memory of a small machine. */
const MAX_HEARD = 500_000

/** The latest receptions of nodes since a time, oldest first; `radios`: only those off the air. */
export async function readHeard(
  { db }: Store,
  since: number,
  by: (typeof HEARD_BY)[number] = 'any',
): Promise<HeardAt[]> {
  const isByEar = by === 'radios' ? and(eq(packets.viaMqtt, false), isNull(packets.gateway)) : undefined
  const all: HeardAt[] = []
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await db
      .select({ id: packets.id, from: packets.fromNodeNum, t: packets.t, replayed: packets.replayed })
      .from(packets)
      .where(and(lt(packets.id, before), isByEar))
      .orderBy(desc(packets.id))
      .limit(SLICE)
      .all()
    for (const { from, t, replayed } of rows) if (!replayed && t >= since) all.push({ from, t })
    const last = rows.at(-1)
    if (last === undefined || rows.length < SLICE || last.t < since || all.length >= MAX_HEARD)
      return all.toSorted((a, b) => a.t - b.t)
    before = last.id
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
