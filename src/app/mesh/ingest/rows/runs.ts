import { sql } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { MAX_RUN_BYTES, WHOLE_RUN } from '../../../../db/runs.ts'
import { telemetryDirty, telemetryRuns } from '../../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { HOUR_MS } from '../../../../shared/time.ts'

/** Measurements of a node at `t`: values by `variant.metric`. */
export type Measurements = {
  readonly nodeNum: number
  readonly t: number
  readonly values: Readonly<Record<string, number>>
  /** Their channel; see `UNKNOWN_CHANNEL`. */
  readonly channel: number | null
}

const OF_NODE = sql`cross join nodes n on n.node_num = ${field('nodeNum')}`
const STORED = sql`left join telemetry_runs o on o.node_id = n.id and o.t = ${field('t')}`
// What is stored wins, so only other entries are added: a patch that repeats what is stored takes the square of its time.
const ADDED = sql`(select json_group_object(cast(m.id as text), json((select json_group_object(x.key, json(x.value))
    from json_each(e.value) x where o.body is null or o.body -> ('$."' || m.id || '"."' || x.key || '"') is null)))
  from json_each(r.j, '$.values') e cross join metrics m on m.name = e.key)`

const queries = prepareOnce((db) => ({
  runs: prepareJsonInsert(db, telemetryRuns, {
    values: {
      nodeId: sql`n.id`,
      t: field('t'),
      body: sql`case when o.body is null then ${ADDED}
        when octet_length(o.body) >= ${sql.raw(String(MAX_RUN_BYTES))} then o.body else json_patch(o.body, ${ADDED}) end`,
    },
    from: sql`${OF_NODE} ${STORED}`,
    // An hour with nothing new is not written.
    onConflict: sql`on conflict (node_id, t) do update set body = excluded.body where body <> excluded.body`,
  }),
  // The other hours are found by themselves when they are over.
  late: prepareJsonInsert(db, telemetryDirty, {
    values: { nodeId: sql`n.id`, metric: sql.raw(String(WHOLE_RUN)), t: field('t') },
    from: sql`${OF_NODE} cross join telemetry_places p on p.name = 'hours'
      and (${field('t')} < p.t or ${field('t')} = p.t and n.id <= p.node_id)`,
    onConflict: sql`on conflict do nothing`,
  }),
}))

type Entries = Record<number, readonly [value: number, channel: number | null]>
type Run = { readonly nodeNum: number; readonly t: number; readonly values: Record<string, Entries> }

/**
 * Statements that add measurements to the packed hours of their nodes, and note hours that were summarised before. Their
 * metrics are known.
 */
export function writeRuns(store: Store, rows: readonly Measurements[]): Statement[] {
  const { runs, late } = queries(store)
  const packed = packRuns(rows)
  return [runs(packed), late(packed.map(({ nodeNum, t }) => ({ nodeNum, t })))]
}

/** The first of several values at the same time stays. */
function packRuns(rows: readonly Measurements[]): Run[] {
  const runs = new Map<string, Run>()
  for (const { nodeNum, t, values, channel } of rows) {
    const begun = t - (t % HOUR_MS)
    const key = `${nodeNum} ${begun}`
    const run = runs.get(key) ?? { nodeNum, t: begun, values: {} }
    runs.set(key, run)
    for (const [name, value] of Object.entries(values)) {
      const entries = (run.values[name] ??= {})
      entries[t - begun] ??= [value, channel]
    }
  }
  return [...runs.values()]
}
