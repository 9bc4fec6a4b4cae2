import { and, eq, gte, lte, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { metrics, telemetry, telemetryDaily, telemetryHourly } from '../../../db/schema.ts'
import { type Db, prepareOnce } from '../../../db/store.ts'
import { unitOf } from '../../../shared/mesh/metric-units.ts'
import { getNodeRowId } from '../nodes/seen.ts'
import type { Reader } from '../../context.ts'
import { ofVisibleNodes, onVisibleChannel, seesAllContents, visibleValues } from '../../sharing/visible.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'

/** A range up to this long is read by measurement; up to the other limit by hour; beyond that by day. */
const RAW_RANGE_MS = 2 * DAY_MS
const HOURLY_RANGE_MS = 60 * DAY_MS

export const RESOLUTIONS = ['raw', 'hour', 'day'] as const

const time = z.int()
const point = z.union([
  z.tuple([time, z.number()]).describe('t, v'),
  z.tuple([time, z.number(), z.number(), z.number()]).describe('t, min, max, avg'),
])

export const seriesSchema = z
  .object({
    metric: z.string(),
    unit: z.string().nullable(),
    resolution: z.enum(RESOLUTIONS).describe('The source of the points: measurements, hours or days'),
    series: z.array(point).describe('Oldest first; min, max and avg if a point combines several measurements'),
  })
  .meta({ id: 'Series', description: 'A metric of a node over time' })
export type Series = z.infer<typeof seriesSchema>

export const metricsSchema = z
  .object({
    metrics: z.array(z.object({ metric: z.string(), unit: z.string().nullable() })),
  })
  .meta({ id: 'Metrics', description: 'The stored metrics' })

export type Range = {
  readonly nodeNum: number
  readonly metric: string
  /** Inclusive, milliseconds. */
  readonly from: number
  readonly to: number
  /** Maximum number of points. */
  readonly points: number
}

const value = sql.placeholder

const isInRange = (t: typeof telemetry | typeof telemetryHourly | typeof telemetryDaily) =>
  and(eq(t.nodeId, value('nodeId')), eq(t.metric, value('metric')), gte(t.t, value('from')), lte(t.t, value('to')))

const MIXED = sql.raw(String(UNKNOWN_CHANNEL))

/** A summary of several channels is recalculated from those of its rows that the view includes. */
const seenSums = (db: Db, { table, below, spanMs, sums }: Summaries) =>
  db
    .select({
      t: sql<number>`s.t`,
      n: sql<number>`s.n`,
      min: sql<number>`s.min`,
      max: sql<number>`s.max`,
      sum: sql<number>`s.sum`,
    })
    .from(
      sql`(select t, n, min, max, sum from ${table} where ${isInRange(table)} and ${onVisibleChannel(table.channel)}
        union all select d.t, ${sums} from ${table} d cross join ${below} x on x.node_id = d.node_id
          and x.metric = d.metric and x.t >= d.t and x.t < d.t + ${sql.raw(String(spanMs))}
          and ${onVisibleChannel(sql`x.channel`)}
        where d.node_id = ${value('nodeId')} and d.metric = ${value('metric')} and d.t >= ${value('from')}
          and d.t <= ${value('to')} and d.channel = ${MIXED} group by d.t) s`,
    )
    .orderBy(sql`s.t`)
    .prepare()

type Summaries = {
  readonly table: typeof telemetryHourly | typeof telemetryDaily
  readonly below: typeof telemetry | typeof telemetryHourly
  readonly spanMs: number
  /** n, min, max and sum of the rows `x`. */
  readonly sums: SQL
}

const OF_MEASUREMENTS = sql`count(*) as n, min(x.v) as min, max(x.v) as max, sum(x.v) as sum`
const OF_HOURS = sql`sum(x.n) as n, min(x.min) as min, max(x.max) as max, sum(x.sum) as sum`

const readFresh = (db: Db, isSeen?: SQL) =>
  db
    .select({
      t: sql<number>`d.t`,
      n: sql<number>`count(*)`,
      min: sql<number>`min(x.v)`,
      max: sql<number>`max(x.v)`,
      sum: sql<number>`sum(x.v)`,
    })
    .from(sql`telemetry_dirty d cross join telemetry x`)
    .where(
      and(
        sql`d.node_id = ${value('nodeId')} and d.metric = ${value('metric')} and d.t >= ${value('from')}
        and d.t <= ${value('to')} and x.node_id = d.node_id and x.metric = d.metric and x.t >= d.t
        and x.t < d.t + ${sql.raw(String(HOUR_MS))}`,
        isSeen,
      ),
    )
    .groupBy(sql`d.t`)
    .prepare()

const readRaw = (db: Db, isSeen?: SQL) =>
  db
    .select({ t: telemetry.t, v: telemetry.v })
    .from(telemetry)
    .where(and(isInRange(telemetry), isSeen))
    .orderBy(telemetry.t)
    .prepare()

const readRollUp = (db: Db, table: typeof telemetryHourly | typeof telemetryDaily) =>
  db
    .select({ t: table.t, n: table.n, min: table.min, max: table.max, sum: table.sum })
    .from(table)
    .where(isInRange(table))
    .orderBy(table.t)
    .prepare()

const queries = prepareOnce((db) => ({
  metric: db
    .select({ id: metrics.id })
    .from(metrics)
    .where(eq(metrics.name, value('name')))
    .prepare(),
  all: db.select({ metric: metrics.name }).from(metrics).orderBy(metrics.name).prepare(),
  // One look-up by the start of the primary key for each metric, regardless of the number of rows.
  ofNode: db
    .select({ metric: metrics.name })
    .from(metrics)
    .where(
      sql`exists (select 1 from telemetry x where x.node_id = ${value('nodeId')} and x.metric = metrics.id)
        or exists (select 1 from telemetry_daily x where x.node_id = ${value('nodeId')} and x.metric = metrics.id)`,
    )
    .orderBy(metrics.name)
    .prepare(),
  raw: readRaw(db),
  hour: readRollUp(db, telemetryHourly),
  day: readRollUp(db, telemetryDaily),
  // Hours that are not summarised yet are summarised here.
  fresh: readFresh(db),
}))

/** The same for views without all channels. */
const seenQueries = prepareOnce((db) => ({
  ofNode: db
    .select({ metric: metrics.name })
    .from(metrics)
    .where(
      sql`exists (select 1 from telemetry x where x.node_id = ${value('nodeId')} and x.metric = metrics.id
          and ${onVisibleChannel(sql`x.channel`)})
        or exists (select 1 from telemetry_daily x where x.node_id = ${value('nodeId')} and x.metric = metrics.id
          and ${onVisibleChannel(sql`x.channel`)})`,
    )
    .orderBy(metrics.name)
    .prepare(),
  // From the daily rows. For a metric on none of the channels, all of them are read.
  all: db
    .select({ metric: metrics.name })
    .from(metrics)
    .where(
      sql`exists (select 1 from nodes n cross join telemetry_daily x on x.node_id = n.id and x.metric = metrics.id
        where ${onVisibleChannel(sql`x.channel`)} and ${ofVisibleNodes(sql`n.node_num`)})`,
    )
    .orderBy(metrics.name)
    .prepare(),
  raw: readRaw(db, onVisibleChannel(telemetry.channel)),
  hour: seenSums(db, { table: telemetryHourly, below: telemetry, spanMs: HOUR_MS, sums: OF_MEASUREMENTS }),
  day: seenSums(db, { table: telemetryDaily, below: telemetryHourly, spanMs: DAY_MS, sums: OF_HOURS }),
  fresh: readFresh(db, onVisibleChannel(sql`x.channel`)),
}))

/** Several measurements as one point. */
type Sum = {
  readonly t: number
  readonly n: number
  readonly min: number
  readonly max: number
  readonly sum: number
}

/** The metrics that a node has measured, or any node if it is null. Throws `node_not_found`. */
export async function listMetrics(
  { store, viewer: { view } }: Reader,
  nodeNum: number | null,
): Promise<z.infer<typeof metricsSchema>> {
  const { all, ofNode } = seesAllContents(view) ? queries(store) : seenQueries(store)
  const values = visibleValues(view)
  const rows =
    nodeNum === null
      ? await all.all(values)
      : await ofNode.all({ nodeId: await getNodeRowId(store, view, nodeNum), ...values })
  return { metrics: rows.map(({ metric }) => ({ metric, unit: unitOf(metric) })) }
}

/**
 * A metric of a node over time. The length of the range decides which table is read. The whole range is read; too many
 * points are averaged evenly. Throws `node_not_found`.
 */
export async function readSeries(
  { store, viewer: { view } }: Reader,
  { nodeNum, metric, from, to, points }: Range,
): Promise<Series> {
  const prepared = { ...queries(store), ...(seesAllContents(view) ? {} : seenQueries(store)) }
  const nodeId = await getNodeRowId(store, view, nodeNum)
  const known = await prepared.metric.get({ name: metric })
  const resolution = to - from <= RAW_RANGE_MS ? 'raw' : to - from <= HOURLY_RANGE_MS ? 'hour' : 'day'
  const answer = { metric, unit: unitOf(metric), resolution } as const
  if (known === undefined) return { ...answer, series: [] }
  const range = { nodeId, metric: known.id, from, to, ...visibleValues(view) }
  if (resolution === 'raw') {
    const rows = await prepared.raw.all(range)
    if (rows.length <= points) return { ...answer, series: rows.map(({ t, v }) => [t, v]) }
    return { ...answer, series: thin(rows.map(toSum), from, to, points).map(toPoint) }
  }
  // An hour or a day counts if any part of it is in the range.
  const begun = { ...range, from: from - (from % (resolution === 'day' ? DAY_MS : HOUR_MS)) }
  const sums = resolution === 'day' ? await prepared.day.all(begun) : await readHours(prepared, begun)
  return { ...answer, series: (sums.length <= points ? sums : thin(sums, begun.from, to, points)).map(toPoint) }
}

async function readHours(
  { hour, fresh }: Pick<ReturnType<typeof queries>, 'hour' | 'fresh'>,
  range: Record<string, string | number>,
): Promise<Sum[]> {
  const hours = new Map((await hour.all(range)).map((sum) => [sum.t, sum]))
  const added = await fresh.all(range)
  if (added.length === 0) return [...hours.values()]
  for (const sum of added) if (sum.n >= (hours.get(sum.t)?.n ?? 0)) hours.set(sum.t, sum)
  return [...hours.values()].toSorted((a, b) => a.t - b.t)
}

/** Averages the points in each of `points` equal parts of the range. */
function thin(sums: readonly Sum[], from: number, to: number, points: number): Sum[] {
  const spanMs = (to - from + 1) / points
  const parts = new Map<number, Sum>()
  for (const sum of sums) {
    const part = Math.floor((sum.t - from) / spanMs)
    const known = parts.get(part)
    parts.set(part, known === undefined ? sum : join(known, sum))
  }
  return [...parts.values()]
}

function join(a: Sum, b: Sum): Sum {
  return { t: a.t, n: a.n + b.n, min: Math.min(a.min, b.min), max: Math.max(a.max, b.max), sum: a.sum + b.sum }
}

function toSum({ t, v }: { t: number; v: number }): Sum {
  return { t, n: 1, min: v, max: v, sum: v }
}

function toPoint({ t, n, min, max, sum }: Sum): Series['series'][number] {
  return [t, min, max, sum / n]
}
