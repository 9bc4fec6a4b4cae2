import { type Placeholder, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { telemetry, telemetryHourly } from '../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../db/store.ts'
import { partOf, type Share } from '../base/pacing/slice-share.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import { beginPass, endPass, leaveAt } from '../base/pacing/sweeps.ts'

/** Rows deleted in one transaction, at most. */
const SLICE_ROWS = 1000
/** Charts whose rows one look-up searches, at most. */
const SLICE_CHARTS = 200

/** A node and a metric, the start of the primary key, so all charts are found without reading their rows. */
const chartSchema = z.object({ nodeId: z.int(), metric: z.int() })
type Chart = z.infer<typeof chartSchema>
const FIRST: Chart = { nodeId: 0, metric: 0 }

const TABLES = { telemetry, telemetry_hourly: telemetryHourly } as const
type ChartTable = keyof typeof TABLES

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
  }
}

const queries = prepareOnce((db) => ({
  telemetry: prepareCharts(db, 'telemetry'),
  telemetry_hourly: prepareCharts(db, 'telemetry_hourly'),
}))

/**
 * Deletes the old rows of each chart, in slices; awaits `pause` after each. The next run continues where this one
 * stopped, and a table that was worked through rests until its cutoff has moved by `restMs`. `goesOn` is false if `pause`
 * ended it.
 */
export async function sweepCharts(
  store: Store,
  { table, cutoff, restMs }: { readonly table: ChartTable; readonly cutoff: number; readonly restMs: number },
  { pause, share }: { readonly pause: Pause; readonly share: Share },
): Promise<{ readonly rows: number; readonly goesOn: boolean }> {
  const prepared = queries(store)[table]
  const pass = await beginPass(store, table, cutoff, restMs)
  if (pass === null) return { rows: 0, goesOn: true }
  let rows = 0
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
