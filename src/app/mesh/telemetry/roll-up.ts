import { getTableName, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { WHOLE_RUN } from '../../../db/runs.ts'
import { telemetry, telemetryDaily, telemetryDirty, telemetryHourly } from '../../../db/schema.ts'
import { bind, type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { partOf, type Share, wholeSlices } from '../../base/pacing/slice-share.ts'
import { endPass, leaveAt, readPlace } from '../../base/pacing/sweeps.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { oneChannel } from './one-channel.ts'
import { oldestUnsummarisedRun, rollUpRuns } from './roll-up-runs.ts'

/** Hours summarised in one transaction at most. */
const SLICE_HOURS = 250

const hourSchema = z.object({ nodeId: z.int(), metric: z.int(), t: z.int() })
type Hour = z.infer<typeof hourSchema>
const FIRST: Hour = { nodeId: 0, metric: 0, t: 0 }

const keys = sql`with k as materialized (select value ->> 'nodeId' as node_id, value ->> 'metric' as metric,
  value ->> 't' as t from json_each(${sql.placeholder('keys')}))`

// Keeps the summary with more measurements: once an hour's measurements are deleted, a late one does not replace its
// summary.
const KEEP_THE_FULLER = sql`on conflict (node_id, metric, t) do update set
  n = excluded.n, min = excluded.min, max = excluded.max, sum = excluded.sum, last = excluded.last,
  channel = excluded.channel
  where excluded.n >= n`

type Source = typeof telemetry | typeof telemetryHourly

/** Summarises the rows of `source` in each span of `keys` and writes one row for each. */
function prepareRollUp(
  db: Db,
  target: typeof telemetryHourly | typeof telemetryDaily,
  { source, spanMs, sums, last }: { source: Source; spanMs: number; sums: SQL; last: string },
) {
  const from = sql.raw(getTableName(source))
  const isWithin = sql`x.node_id = k.node_id and x.metric = k.metric and x.t >= k.t and x.t < k.t + ${sql.raw(String(spanMs))}`
  const latest = sql`(select ${sql.raw(last)} from ${from} x where ${isWithin} order by x.t desc limit 1)`
  return db
    .insert(target)
    .select(
      sql`${keys} select k.node_id, k.metric, k.t, ${sums}, ${latest}, ${oneChannel(sql`x.channel`)} from k cross join ${from} x
        where ${isWithin} group by k.node_id, k.metric, k.t ${KEEP_THE_FULLER}`,
    )
    .prepare()
}

const queries = prepareOnce((db) => ({
  dirty: db
    .select()
    .from(telemetryDirty)
    .where(
      sql`(node_id, metric, t) > (${sql.placeholder('nodeId')}, ${sql.placeholder('metric')}, ${sql.placeholder('t')})
        and metric > ${sql.raw(String(WHOLE_RUN))} and t < ${sql.placeholder('before')}`,
    )
    .orderBy(telemetryDirty.nodeId, telemetryDirty.metric, telemetryDirty.t)
    .limit(sql.placeholder('hours'))
    .prepare(),
  oldest: db
    .select({ t: sql<number | null>`min(t)` })
    .from(telemetryDirty)
    .prepare(),
  hourly: prepareRollUp(db, telemetryHourly, {
    source: telemetry,
    spanMs: HOUR_MS,
    sums: sql`count(*), min(x.v), max(x.v), sum(x.v)`,
    last: 'x.v',
  }),
  daily: prepareRollUp(db, telemetryDaily, {
    source: telemetryHourly,
    spanMs: DAY_MS,
    sums: sql`sum(x.n), min(x.min), max(x.max), sum(x.sum)`,
    last: 'x.last',
  }),
  clean: db
    .delete(telemetryDirty)
    .where(
      sql`(node_id, metric, t) in (select value ->> 'nodeId', value ->> 'metric', value ->> 't'
        from json_each(${sql.placeholder('keys')}))`,
    )
    .prepare(),
}))

/**
 * Brings the hourly and daily summaries up to date, at most `SLICE_HOURS` in one transaction; awaits `pause` after each,
 * which returns whether to continue. The next run continues where this one stopped. `before`: hours that begin later
 * wait. Returns the number of hours. An hour is recalculated from its measurements, so repeating or interrupting the
 * work does no harm.
 */
export async function rollUp(
  store: Store,
  pause: () => Promise<boolean>,
  share: Share = wholeSlices,
  before = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  let goesOn = true
  const watched = async () => {
    goesOn = await pause()
    return goesOn
  }
  const hours = await rollUpRows(store, watched, share, before)
  return goesOn ? hours + (await rollUpRuns(store, pause, share, before)) : hours
}

async function rollUpRows(store: Store, pause: () => Promise<boolean>, share: Share, before: number): Promise<number> {
  const prepared = queries(store)
  const begun = hourSchema.safeParse(await readPlace(store, 'summaries')).data ?? null
  let place = begun ?? FIRST
  let isFromStart = begun === null
  for (let done = 0; ;) {
    const hours = await prepared.dirty.all({ ...place, before, hours: partOf(SLICE_HOURS, share()) })
    if (hours.length === 0) {
      if (isFromStart) {
        if (begun !== null) await endPass(store, 'summaries')
        return done
      }
      isFromStart = true
      place = FIRST
      continue
    }
    const hourKeys = { keys: JSON.stringify(hours) }
    await store.atomic(
      [
        bind(prepared.hourly, hourKeys),
        bind(prepared.daily, { keys: JSON.stringify(listDays(hours)) }),
        bind(prepared.clean, hourKeys),
      ],
      'lazily',
    )
    done += hours.length
    place = hours.at(-1) ?? place
    if (await pause()) continue
    await leaveAt(store, 'summaries', place)
    return done
  }
}

/** The oldest hour that is not summarised yet; null: none, at least before `before`. */
export async function oldestUnsummarised(store: Store, before: number): Promise<number | null> {
  const rows = (await queries(store).oldest.get())?.t ?? null
  const runs = await oldestUnsummarisedRun(store, before)
  return rows === null || runs === null ? (rows ?? runs) : Math.min(rows, runs)
}

/** The days of these hours, each once. */
function listDays(hours: readonly Hour[]): Hour[] {
  const days = new Map<string, Hour>()
  for (const { nodeId, metric, t } of hours) {
    const day = t - (t % DAY_MS)
    days.set(`${nodeId} ${metric} ${day}`, { nodeId, metric, t: day })
  }
  return [...days.values()]
}
