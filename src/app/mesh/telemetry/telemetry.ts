import * as z from 'zod'
import { rawRows } from '../../../db/store.ts'
import { nearestNames } from '../../../shared/nearest.ts'
import { isKnownMetric, knownMetrics } from '../../../meshtastic/payload/telemetry.ts'
import { AppError } from '../../http/errors.ts'
import { unitOf } from '../../../shared/mesh/metric-units.ts'
import { getNodeRowId } from '../nodes/seen.ts'
import type { Reader } from '../../base/context.ts'
import { seesEverything, visibleValues } from '../../accounts/access/visible.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { queriesFor } from './queries.ts'

/**
 * Ranges up to this long are read from single measurements; up to the other limit from hours; longer ones from days.
 */
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
  const { all, ofNode } = await queriesFor(store, seesEverything(view))
  const values = visibleValues(view)
  const rows =
    nodeNum === null
      ? await all.all(values)
      : await ofNode.all({ nodeId: await getNodeRowId(store, view, nodeNum), ...values })
  return { metrics: rows.map(({ metric }) => ({ metric, unit: unitOf(metric) })) }
}

/**
 * A metric of a node over time. The length of the range decides which table is read. If its rows are already deleted,
 * their summaries are read instead. The whole range is read; too many points are averaged evenly. Throws
 * `node_not_found`.
 */
export async function readSeries(
  { store, viewer: { view } }: Reader,
  { nodeNum, metric, from, to, points }: Range,
): Promise<Series> {
  const prepared = await queriesFor(store, seesEverything(view))
  const nodeId = await getNodeRowId(store, view, nodeNum)
  const known = await prepared.metric.get({ name: metric })
  const unit = unitOf(metric)
  const wanted = to - from <= RAW_RANGE_MS ? 'raw' : to - from <= HOURLY_RANGE_MS ? 'hour' : 'day'
  if (known === undefined) {
    refuseUnknown(metric)
    return { metric, unit, resolution: wanted, series: [] }
  }
  const range = { nodeId, metric: known.id, from, to, ...visibleValues(view) }
  const byHours = { rows: prepared.raw, summaries: prepared.hour, spanMs: HOUR_MS }
  const byDays = { rows: prepared.hour, summaries: prepared.day, spanMs: DAY_MS }
  if (wanted === 'raw') {
    const rows = await readPoints(prepared, range)
    const isKept =
      (await isComplete(byHours, range, rows[0]?.[0])) &&
      (rows.length > 0 || (await isComplete(byDays, range, undefined)))
    if (isKept) {
      const series: Series['series'] =
        rows.length <= points ? rows.map(([t, v]) => [t, v]) : thin(rows.map(toSum), from, to, points).map(toPoint)
      return { metric, unit, resolution: 'raw', series }
    }
  }
  // An hour or a day counts if any part of it is in the range.
  const byHour = { ...range, from: startOf(from, HOUR_MS) }
  const byDay = { ...range, from: startOf(from, DAY_MS) }
  const hours = wanted === 'day' ? null : await readHours(prepared, byHour)
  const isByHour = hours !== null && (await isComplete(byDays, range, hours[0]?.t))
  const sums = isByHour ? hours : await readDays(prepared, byDay)
  const begun = isByHour ? byHour.from : byDay.from
  const series = (sums.length <= points ? sums : thin(sums, begun, to, points)).map(toPoint)
  return { metric, unit, resolution: isByHour ? 'hour' : 'day', series }
}

function startOf(t: number, spanMs: number): number {
  return t - (t % spanMs)
}

type Prepared = Awaited<ReturnType<typeof queriesFor>>
type Asked = Record<string, string | number> & { readonly from: number; readonly to: number }

/** A select whose rows begin with their time. */
type Rows = Parameters<typeof rawRows>[0]
type RawPoint = readonly [t: number, v: number]
type RawSum = readonly [t: number, n: number, min: number, max: number, sum: number]

async function readPoints({ raw, isPacked }: Prepared, range: Asked): Promise<readonly RawPoint[]> {
  const rows = await rawRows<RawPoint>(raw, range)
  return isPacked ? inOrder(rows, ([t]) => t, first) : rows
}

const first = (point: RawPoint) => point

async function readSums(select: Rows, range: Asked, isPacked: boolean): Promise<readonly Sum[]> {
  const sums = (await rawRows<RawSum>(select, range)).map(([t, n, min, max, sum]): Sum => ({ t, n, min, max, sum }))
  return isPacked ? inOrder(sums, ({ t }) => t, join) : sums
}

/** Rows of both forms by time; of two at the same time, `merge` makes one. */
function inOrder<T>(rows: readonly T[], timeOf: (row: T) => number, merge: (first: T, other: T) => T): readonly T[] {
  if (rows.every((row, index) => index === 0 || timeOf(rows[index - 1] ?? row) < timeOf(row))) return rows
  const byTime = new Map<number, T>()
  for (const row of rows) {
    const known = byTime.get(timeOf(row))
    byTime.set(timeOf(row), known === undefined ? row : merge(known, row))
  }
  return [...byTime.values()].toSorted((a, b) => timeOf(a) - timeOf(b))
}

/** False if the range begins with summaries whose source rows are deleted. `first`: the first row of the range. */
async function isComplete(
  { rows, summaries, spanMs }: { readonly rows: Rows; readonly summaries: Rows; readonly spanMs: number },
  range: Asked,
  first: number | undefined,
): Promise<boolean> {
  const from = startOf(range.from, spanMs)
  const to = startOf(first ?? range.to + spanMs, spanMs) - 1
  const summed = to < from ? [] : await rawRows<RawSum>(summaries, { ...range, from, to })
  if (summed.length === 0) return true
  const present = new Set((await rawRows<RawPoint>(rows, { ...range, from, to })).map(([t]) => startOf(t, spanMs)))
  return summed.every(([t]) => present.has(t))
}

/** Days with hours that are not summarised yet are put together from their hours. */
async function readDays(prepared: Prepared, range: Asked): Promise<Sum[]> {
  const days = new Map((await readSums(prepared.day, range, prepared.isPacked)).map((sum) => [sum.t, sum]))
  const added = await readSums(prepared.fresh, range, prepared.isPacked)
  if (added.length === 0) return [...days.values()]
  const begun = new Set(added.map(({ t }) => startOf(t, DAY_MS)))
  const from = Math.min(...begun)
  const rebuilt = new Map<number, Sum>()
  for (const sum of await readHours(prepared, { ...range, from })) {
    const t = startOf(sum.t, DAY_MS)
    const part = rebuilt.get(t)
    if (begun.has(t)) rebuilt.set(t, part === undefined ? { ...sum, t } : join(part, sum))
  }
  for (const [t, sum] of rebuilt) if (sum.n >= (days.get(t)?.n ?? 0)) days.set(t, sum)
  return [...days.values()].toSorted((a, b) => a.t - b.t)
}

const PAXCOUNTER = ['paxcounter.wifi', 'paxcounter.ble', 'paxcounter.uptimeSeconds']
const KNOWN = [...knownMetrics(), ...PAXCOUNTER]
const TYPING_ERRORS = 6
const MAX_NAMED = 3

/** Throws `invalid_request` for a name that no node can measure, with similar ones. */
function refuseUnknown(metric: string): void {
  if (isKnownMetric(metric) || PAXCOUNTER.includes(metric)) return
  const near = nearestNames(metric, KNOWN, TYPING_ERRORS).slice(0, MAX_NAMED)
  const message = `no such metric${near.length === 0 ? '; GET /api/telemetry lists those stored' : `; did you mean ${near.join(', ')}?`}`
  throw new AppError('invalid_request', `metric: ${message}`, { issues: [{ path: 'metric', message }] })
}

async function readHours({ hour, fresh, isPacked }: Prepared, range: Asked): Promise<Sum[]> {
  const hours = new Map((await readSums(hour, range, isPacked)).map((sum) => [sum.t, sum]))
  const added = await readSums(fresh, range, isPacked)
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

function toSum([t, v]: RawPoint): Sum {
  return { t, n: 1, min: v, max: v, sum: v }
}

function toPoint({ t, n, min, max, sum }: Sum): Series['series'][number] {
  return [t, min, max, sum / n]
}
