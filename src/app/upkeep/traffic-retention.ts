import { lt, type Placeholder, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { channels, packetHours, packets, telemetryHourly, traceroutes } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import type { Settings } from '../settings/settings.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import type { Shares } from './retention.ts'
import { beginPass, endPass, leaveAt } from '../base/pacing/sweeps.ts'

/** Rows deleted in one transaction, at most. */
const SLICE_ROWS = 1000
/** Charts whose hours one look-up searches, at most. */
const SLICE_CHARTS = 200

export type TrafficDeleted = {
  readonly hours: number
  readonly packets: number
  readonly traceroutes: number
  readonly channels: number
}

const value = sql.placeholder
const slice = sql`limit ${value('rows')}`

const nextChart = (nodeId: Placeholder | SQL, metric: Placeholder | SQL): SQL => sql`select json_array(node_id, metric)
  from telemetry_hourly where (node_id, metric) > (${nodeId}, ${metric}) order by node_id, metric limit 1`

const queries = prepareOnce((db) => ({
  // A chart is a node and a metric. These are the start of the primary key, so all charts are found without reading
  // their rows.
  charts: db
    .select({ nodeId: sql<number>`json_extract(c.k, '$[0]')`, metric: sql<number>`json_extract(c.k, '$[1]')` })
    .from(
      sql`(with recursive step(k) as (
        select (${nextChart(value('nodeId'), value('metric'))})
        union all select (${nextChart(sql`step.k ->> 0`, sql`step.k ->> 1`)}) from step where step.k is not null
        limit ${value('most')}) select k from step where k is not null) c`,
    )
    .prepare(),
  hours: db
    .delete(telemetryHourly)
    .where(
      sql`(node_id, metric, t) in (select x.node_id, x.metric, x.t from json_each(${value('charts')}) c
        cross join telemetry_hourly x on x.node_id = c.value ->> 'nodeId' and x.metric = c.value ->> 'metric'
        where x.t < ${value('cutoff')} ${slice})`,
    )
    .returning({ t: telemetryHourly.t })
    .prepare(),
  // Only the oldest are checked: they are the first to be deleted.
  packets: db
    .delete(packets)
    .where(
      sql`id in (select id from (select id, t from packets order by id ${slice})
        where t < ${value('cutoff')})`,
    )
    .returning({ id: packets.id })
    .prepare(),
  packetHours: db
    .delete(packetHours)
    .where(lt(packetHours.t, value('before')))
    .prepare(),
  oldest: db.select({ t: packets.t }).from(packets).orderBy(packets.id).limit(1).prepare(),
  traceroutes: db
    .delete(traceroutes)
    .where(sql`id in (select id from traceroutes where timestamp < ${value('cutoff')} ${slice})`)
    .returning({ id: traceroutes.id })
    .prepare(),
  channels: db
    .delete(channels)
    .where(
      sql`(source_id, channel_index) in
        (select source_id, channel_index from channels where last_heard < ${value('cutoff')} ${slice})`,
    )
    .returning({ index: channels.index })
    .prepare(),
}))

/**
 * Deletes old hourly values, logged packets, traceroutes, and channels unused for as long, in slices; awaits `pause`
 * after each, which returns whether to continue. The next run continues where this one stopped. Returns the number of
 * deleted rows.
 */
export async function deleteOldTraffic(
  store: Store,
  settings: Pick<Settings, 'telemetryHourlyRetentionDays' | 'packetRetentionDays' | 'messageRetentionDays'>,
  {
    now,
    pause,
    share = wholeSlices,
    each,
    restMs = 0,
  }: { readonly now: number; readonly pause: Pause; readonly share?: Share } & Shares,
): Promise<TrafficDeleted> {
  const prepared = queries(store)
  let goesOn = true
  const clear = async (own: Pause, deleteSlice: Parameters<typeof inSlices>[0]): Promise<number> => {
    if (!goesOn) return 0
    const done = await inSlices(deleteSlice, { full: SLICE_ROWS, pause: own, share })
    goesOn = done.goesOn && (await own())
    return done.rows
  }
  const clearTable = async (deleteSlice: Parameters<typeof inSlices>[0]): Promise<number> => {
    goesOn ||= each !== undefined
    return clear(each?.() ?? pause, deleteSlice)
  }
  const cutoff = (days: number) => now - days * DAY_MS
  const packetCutoff = cutoff(settings.packetRetentionDays)
  const log = await clearTable(async (rows) => {
    // The log is in the order of arrival: if its oldest row stays, all stay.
    const oldest = await prepared.oldest.get()
    const isOld = oldest !== undefined && oldest.t < packetCutoff
    return isOld ? await prepared.packets.all({ cutoff: packetCutoff, rows }) : []
  })
  if (goesOn) await prepared.packetHours.run({ before: packetCutoff - HOUR_MS })
  const routeCutoff = cutoff(settings.messageRetentionDays)
  const routes = await clearTable((rows) => prepared.traceroutes.all({ cutoff: routeCutoff, rows }))
  const unused = await clearTable((rows) => prepared.channels.all({ cutoff: routeCutoff, rows }))
  const counts = { packets: log, traceroutes: routes, channels: unused }
  goesOn ||= each !== undefined
  if (!goesOn) return { ...counts, hours: 0 }
  // Last, because a large mesh needs the most slices for it, even when there is nothing to delete.
  const pass = await beginPass(store, 'telemetry_hourly', cutoff(settings.telemetryHourlyRetentionDays), restMs)
  if (pass === null) return { ...counts, hours: 0 }
  const own = each?.() ?? pause
  let hours = 0
  let place = chartSchema.safeParse(pass.place).data
  for await (const charts of listCharts(store, share, place)) {
    const range = { charts: JSON.stringify(charts), cutoff: pass.cutoff }
    const { rows, goesOn: isDone } = await inSlices((most) => prepared.hours.all({ ...range, rows: most }), {
      full: SLICE_ROWS,
      pause: own,
      share,
    })
    hours += rows
    if (isDone) place = charts.at(-1)
    if (isDone && (await own())) continue
    await leaveAt(store, 'telemetry_hourly', place ?? FIRST_CHART)
    return { ...counts, hours }
  }
  await endPass(store, 'telemetry_hourly')
  return { ...counts, hours }
}

const chartSchema = z.object({ nodeId: z.int(), metric: z.int() })
type Chart = z.infer<typeof chartSchema>
const FIRST_CHART: Chart = { nodeId: 0, metric: 0 }

async function* listCharts(store: Store, share: Share, after: Chart = FIRST_CHART): AsyncGenerator<Chart[]> {
  const { charts } = queries(store)
  for (let last: Chart | undefined = after; last !== undefined;) {
    const found: Chart[] = await charts.all({ ...last, most: partOf(SLICE_CHARTS, share()) })
    if (found.length > 0) yield found
    last = found.at(-1)
  }
}
