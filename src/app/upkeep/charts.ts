import { type Placeholder, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { prepareCount, RUNS_OF } from '../../db/runs.ts'
import { nodes, telemetry, telemetryHourly, telemetryHourlyRuns, telemetryRuns } from '../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../db/store.ts'
import { partOf, type Share } from '../base/pacing/slice-share.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import { beginPass, endPass, leaveAt, type Pass } from '../base/pacing/sweeps.ts'

/** Rows deleted in one transaction, at most. */
const SLICE_ROWS = 1000
/** Packed rows deleted in one transaction, at most: each is as large as many others. */
const SLICE_RUNS = 400
/** Charts whose rows one look-up searches, at most. */
const SLICE_CHARTS = 200

/** A node and a metric, the start of the primary key, so all charts are found without reading their rows. */
const chartSchema = z.object({ nodeId: z.int(), metric: z.int() })
type Chart = z.infer<typeof chartSchema>
const FIRST: Chart = { nodeId: 0, metric: 0 }

const TABLES = { telemetry, telemetry_hourly: telemetryHourly } as const
const PACKED = { telemetry: telemetryRuns, telemetry_hourly: telemetryHourlyRuns } as const
type ChartTable = keyof typeof TABLES

/** The place in the packed rows, which come first: the node up to which they are done. */
const packedSchema = z.object({ packedUpTo: z.int() })
/** Nodes whose packed rows one look-up searches, at most. */
const SLICE_NODES = 200

const value = sql.placeholder

function prepareCharts(db: Db, name: ChartTable) {
  const table = TABLES[name]
  const next = (nodeId: Placeholder | SQL, metric: Placeholder | SQL): SQL => sql`select json_array(node_id, metric)
    from ${table} where (node_id, metric) > (${nodeId}, ${metric}) order by node_id, metric limit 1`
  return {
    charts: db
      .select({ nodeId: sql<number>`json_extract(c.k, '$[0]')`, metric: sql<number>`json_extract(c.k, '$[1]')` })
      .from(
        sql`(with recursive step(k) as (
          select (${next(value('nodeId'), value('metric'))})
          union all select (${next(sql`step.k ->> 0`, sql`step.k ->> 1`)}) from step where step.k is not null
          limit ${value('most')}) select k from step where k is not null) c`,
      )
      .prepare(),
    old: db
      .delete(table)
      .where(
        sql`(node_id, metric, t) in (select x.node_id, x.metric, x.t from json_each(${value('charts')}) c
          cross join ${table} x on x.node_id = c.value ->> 'nodeId' and x.metric = c.value ->> 'metric'
          where x.t < ${value('cutoff')} limit ${value('rows')})`,
      )
      .returning({ t: table.t })
      .prepare(),
    isPacked: db
      .select({ one: sql<number>`1` })
      .from(PACKED[name])
      .limit(1)
      .prepare(),
    nodes: db
      .select({ id: nodes.id })
      .from(nodes)
      .where(sql`id > ${value('after')}`)
      .orderBy(nodes.id)
      .limit(value('most'))
      .prepare(),
    // A row of which a part is old stays.
    oldRuns: db
      .delete(PACKED[name])
      .where(
        sql`(node_id, t) in (select x.node_id, x.t from nodes n cross join ${PACKED[name]} x on x.node_id = n.id
          where n.id > ${value('after')} and n.id <= ${value('upTo')}
          and x.t <= ${value('cutoff')} - ${sql.raw(String(RUNS_OF[name].rowMs))} limit ${value('rows')})`,
      )
      .returning({ nodeId: PACKED[name].nodeId })
      .prepare(),
    count: prepareCount(db, sql`json_each(${value('nodes')}) k`, sql`k.value`),
  }
}

const queries = prepareOnce((db) => ({
  telemetry: prepareCharts(db, 'telemetry'),
  telemetry_hourly: prepareCharts(db, 'telemetry_hourly'),
}))

/**
 * Deletes the old rows of each chart, and the packed rows of each node, in slices; awaits `pause` after each. The next
 * run continues where this one stopped, and a table that was worked through rests until its cutoff has moved by `restMs`.
 * `goesOn` is false if `pause` ended it.
 */
export async function sweepCharts(
  store: Store,
  { table, cutoff, restMs }: { readonly table: ChartTable; readonly cutoff: number; readonly restMs: number },
  { pause, share }: { readonly pause: Pause; readonly share: Share },
): Promise<{ readonly rows: number; readonly goesOn: boolean }> {
  const prepared = queries(store)[table]
  const pass = await beginPass(store, table, cutoff, restMs)
  if (pass === null) return { rows: 0, goesOn: true }
  const packed = await sweepRuns(store, { table, pass }, { pause, share })
  if (!packed.goesOn) return packed
  let rows = packed.rows
  for (let place: Chart = chartSchema.safeParse(pass.place).data ?? FIRST; ;) {
    const charts: Chart[] = await prepared.charts.all({ ...place, most: partOf(SLICE_CHARTS, share()) })
    const last = charts.at(-1)
    if (last === undefined) {
      await endPass(store, table)
      return { rows, goesOn: true }
    }
    const range = { charts: JSON.stringify(charts), cutoff: pass.cutoff }
    // A power cut only repeats it.
    const remove = (most: number) => store.lazily(() => prepared.old.all({ ...range, rows: most }))
    const done = await inSlices(remove, {
      full: SLICE_ROWS,
      pause,
      share,
    })
    rows += done.rows
    if (done.goesOn) place = last
    if (done.goesOn && (await pause())) continue
    await leaveAt(store, table, place)
    return { rows, goesOn: false }
  }
}

/** The packed rows of the same pass, as `sweepCharts`. */
async function sweepRuns(
  store: Store,
  { table, pass }: { readonly table: ChartTable; readonly pass: Pass },
  { pause, share }: { readonly pause: Pause; readonly share: Share },
): Promise<{ readonly rows: number; readonly goesOn: boolean }> {
  const prepared = queries(store)[table]
  const begun = packedSchema.safeParse(pass.place).data
  let rows = 0
  if (pass.place !== null && begun === undefined) return { rows, goesOn: true }
  if ((await prepared.isPacked.get()) === undefined) return { rows, goesOn: true }
  for (let after = begun?.packedUpTo ?? 0; ;) {
    const upTo = (await prepared.nodes.all({ after, most: partOf(SLICE_NODES, share()) })).at(-1)?.id
    if (upTo === undefined) return { rows, goesOn: true }
    const range = { after, upTo, cutoff: pass.cutoff }
    const trimmed = new Set<number>()
    const remove = async (most: number) => {
      const gone = await store.lazily(() => prepared.oldRuns.all({ ...range, rows: most }))
      for (const { nodeId } of gone) trimmed.add(nodeId)
      return gone
    }
    const done = await inSlices(remove, { full: SLICE_RUNS, pause, share })
    // Once for each: a count is a written row.
    if (trimmed.size > 0) await store.lazily(() => prepared.count.run({ nodes: JSON.stringify([...trimmed]) }))
    rows += done.rows
    if (done.goesOn) after = upTo
    if (done.goesOn && (await pause())) continue
    await leaveAt(store, table, { packedUpTo: after })
    return { rows, goesOn: false }
  }
}
