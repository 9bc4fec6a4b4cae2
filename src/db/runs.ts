import { sql, type SQL } from 'drizzle-orm'
import { isNameOf, namesOf } from '../shared/names.ts'
import { DAY_MS, HOUR_MS } from '../shared/time.ts'
import { rowCounts } from './schema.ts'
import { type Db, prepareOnce, rememberUnchanged, type Store } from './store.ts'

// Measurements in packed rows. A body is an object by metric id; each metric has its entries by the time since the
// row's `t`, in units of `stepMs`. An entry is an array: `[value, channel]` in an hour of measurements, and in a row of
// summaries `[n, channel, last, min, max, sum]`, without the last three if n is 1.
// Decision: docs/decisions/packed-on-the-edge.md

/** What a row covers and what a key counts, in milliseconds. */
export type RunForm = { readonly table: string; readonly rowMs: number; readonly stepMs: number }

export const MONTH_MS = 30 * DAY_MS

export const RUNS = { table: 'telemetry_runs', rowMs: HOUR_MS, stepMs: 1 } as const satisfies RunForm
export const HOURLY_RUNS = { table: 'telemetry_hourly_runs', rowMs: DAY_MS, stepMs: HOUR_MS } as const satisfies RunForm
export const DAILY_RUNS = { table: 'telemetry_daily_runs', rowMs: MONTH_MS, stepMs: DAY_MS } as const satisfies RunForm

/** What a row of the plain form takes on disk: packed rows count as so many of them. */
export const PLAIN_ROW_BYTES = { telemetry: 32, telemetry_hourly: 70, telemetry_daily: 70 } as const

/** The packed rows beside a table, which count with its rows. */
export const RUNS_OF = { telemetry: RUNS, telemetry_hourly: HOURLY_RUNS, telemetry_daily: DAILY_RUNS } as const

/** The names in `row_counts` of the rows of a table. */
export function countedAs(table: string): readonly string[] {
  return isNameOf(RUNS_OF, table) ? [table, RUNS_OF[table].table] : [table]
}

/** The metric that stands for all of a packed hour in `telemetry_dirty`. */
export const WHOLE_RUN = 0

/** The most that a node's packed hour takes, in bytes; more of its measurements are not stored. */
export const MAX_RUN_BYTES = 16_384

const { raw } = sql

/** The path of a metric in a body. `metric`: SQL, perhaps a number that a driver binds as a float. */
export const pathOf = (metric: SQL) => sql`'$."' || cast(${metric} as integer) || '"'`

type Asked = { readonly node: SQL; readonly metric: SQL; readonly from: SQL; readonly to: SQL }

/** The rows `r` with their entries `e` of one metric of a node, for the end of a `from` clause, and their condition. */
export function entriesOf({ table, rowMs, stepMs }: RunForm, { node, metric, from, to }: Asked) {
  const t = timeOf({ stepMs })
  return {
    from: sql`${raw(table)} r cross join json_each(r.body, ${pathOf(metric)}) e`,
    // A restored backup may have JSON of another form.
    where: sql`e.type = 'array' and r.node_id = ${node} and r.t > ${from} - ${raw(String(rowMs))} and r.t <= ${to} and ${t} >= ${from}
      and ${t} <= ${to}`,
  }
}

/** The time of entry `e` in row `r`. */
export function timeOf({ stepMs }: Pick<RunForm, 'stepMs'>): SQL {
  return sql`r.t + e.key * ${raw(String(stepMs))}`
}

const part = (index: number, of: string) => raw(`${of}.value ->> ${index}`)
const real = (value: SQL) => sql`cast(${value} as real)`

/** The value and channel of a measurement, the entry `of`. */
export const measurementOf = (of = 'e') => ({ v: real(part(0, of)), channel: part(1, of) })

/** The columns of a summary, the entry `of`. */
export function summaryOf(of = 'e') {
  const orLast = (index: number) => real(sql`coalesce(${part(index, of)}, ${part(2, of)})`)
  return {
    n: part(0, of),
    channel: part(1, of),
    last: real(part(2, of)),
    min: orLast(3),
    max: orLast(4),
    sum: orLast(5),
  }
}

/** Up to where packed rows are summarised, as the condition on the row `r`. */
export function isSummarised(place: 'hours' | 'days'): SQL {
  return sql`exists (select 1 from telemetry_places p where p.name = ${raw(`'${place}'`)} and (r.t < p.t
    or r.t = p.t and r.node_id <= p.node_id))`
}

/** The start of the hour or day of which not all nodes are summarised; every row before it is. */
export function summarisedUntil(place: 'hours' | 'days'): SQL {
  return sql`coalesce((select p.t from telemetry_places p where p.name = ${raw(`'${place}'`)}), 0)`
}

/** Counts in `row_counts` what is packed of nodes. `keys`: a table; `id`: the node's id there. */
export function prepareCount(db: Db, keys: SQL, id: SQL) {
  const counts = namesOf(RUNS_OF).map((name) => {
    const table = raw(RUNS_OF[name].table)
    const rows = sql`coalesce(sum(octet_length(x.body)), 0) / ${raw(String(PLAIN_ROW_BYTES[name]))}`
    return sql`select ${raw(`'${RUNS_OF[name].table}'`)}, ${id}, (select ${rows} from ${table} x where x.node_id = ${id})
      from ${keys}`
  })
  return db
    .insert(rowCounts)
    .select(
      sql`${sql.join(counts, sql` union all `)} where true on conflict (table_name, owner) do update set n = excluded.n
        where n <> excluded.n`,
    )
    .prepare()
}

const used = prepareOnce((db) =>
  db
    .select({
      isUsed: sql<number>`exists (select 1 from telemetry_runs) or exists (select 1 from telemetry_hourly_runs)
        or exists (select 1 from telemetry_daily_runs)`,
    })
    .from(sql`(select 1)`)
    .prepare(),
)
const readUsed = rememberUnchanged(1, async (store, _key: 'used') => (await used(store).get())?.isUsed === 1)

/** Whether there are packed rows: a store that does not pack has some only from a backup of one that does. */
export function hasRuns(store: Store): boolean | Promise<boolean> {
  return store.packs || readUsed(store, 'used')
}
