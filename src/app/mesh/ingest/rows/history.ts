import { sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { metrics, positions, telemetry, telemetryDirty } from '../../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { type Measurements, writeRuns } from './runs.ts'

/** The position of a node at `t`, in milliseconds. */
export type PositionRow = {
  readonly nodeNum: number
  readonly t: number
  readonly latitude: number
  readonly longitude: number
  readonly altitude: number | null
  readonly precisionBits: number | null
  /** Its channel; see `UNKNOWN_CHANNEL`. */
  readonly channel: number | null
}

const POSITION_VALUES = {
  nodeId: sql`n.id`,
  t: field('t'),
  latitude: field('latitude'),
  longitude: field('longitude'),
  altitude: field('altitude'),
  precisionBits: field('precisionBits'),
  channel: field('channel'),
} satisfies Record<keyof typeof positions.$inferSelect, SQL>

const TELEMETRY_VALUES = {
  nodeId: sql`n.id`,
  metric: sql`m.id`,
  t: field('t'),
  v: sql`e.value`,
  channel: field('channel'),
} satisfies Record<keyof typeof telemetry.$inferSelect, SQL>

const DIRTY_VALUES = {
  nodeId: sql`n.id`,
  metric: sql`m.id`,
  t: sql`${field('t')} - ${field('t')} % 3600000`,
} satisfies Record<keyof typeof telemetryDirty.$inferSelect, SQL>

const METRIC_VALUES = {
  id: sql`null`,
  name: field('name'),
} satisfies Record<keyof typeof metrics.$inferSelect, SQL>

// `cross join` keeps SQLite from reordering the tables.
const OF_NODE = sql`cross join nodes n on n.node_num = ${field('nodeNum')}`
const OF_METRIC = sql`${OF_NODE} cross join json_each(r.j, '$.values') e cross join metrics m on m.name = e.key`

const queries = prepareOnce((db) => ({
  positions: prepareJsonInsert(db, positions, {
    values: POSITION_VALUES,
    from: OF_NODE,
    onConflict: sql`on conflict do nothing`,
  }),
  telemetry: prepareJsonInsert(db, telemetry, {
    values: TELEMETRY_VALUES,
    from: OF_METRIC,
    onConflict: sql`on conflict do nothing`,
  }),
  dirty: prepareJsonInsert(db, telemetryDirty, {
    values: DIRTY_VALUES,
    from: OF_METRIC,
    onConflict: sql`on conflict do nothing`,
  }),
  // A conflict would count the last id up, which is one more write.
  metrics: prepareJsonInsert(db, metrics, {
    values: METRIC_VALUES,
    from: sql`cross join (select 1) on not exists (select 1 from metrics m where m.name = ${field('name')})`,
    onConflict: sql`on conflict do nothing`,
  }),
}))

/** Statements that add to the tracks of nodes; the nodes exist already, or are created earlier in the same step. */
export function writePositions(store: Store, rows: readonly PositionRow[]): Statement[] {
  return rows.length === 0 ? [] : [queries(store).positions(rows)]
}

/**
 * Statements that insert measurements of nodes, packed if the store packs, and metrics missing from `knownMetrics`. They
 * also mark the affected hours for a new summary.
 */
export function writeTelemetry(
  store: Store,
  rows: readonly Measurements[],
  knownMetrics: ReadonlySet<string>,
): Statement[] {
  if (rows.length === 0) return []
  const added = listMetricNames(rows).filter((name) => !knownMetrics.has(name))
  const { metrics: writeMetrics, telemetry: writeRows, dirty: writeHours } = queries(store)
  return [
    ...(added.length > 0 ? [writeMetrics(added.map((name) => ({ name })))] : []),
    ...(store.packs ? writeRuns(store, rows) : [writeRows(rows), writeHours(rows)]),
  ]
}

export function listMetricNames(rows: readonly Measurements[]): string[] {
  return [...new Set(rows.flatMap(({ values }) => Object.keys(values)))]
}
