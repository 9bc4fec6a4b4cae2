import { lt, type Placeholder, sql, type SQL } from 'drizzle-orm'
import { channels, packetHours, packets, telemetryHourly, traceroutes } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import type { Settings } from '../settings/settings.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'
import { partOf, type Share, wholeSlices } from '../base/slice-share.ts'
import { inSlices, type Pause } from '../base/slices.ts'

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
  // A chart is a node and a metric: the start of the primary key, so all charts are found without reading their rows.
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
 * after each, which returns whether to continue. Returns the number of deleted rows.
 */
export async function deleteOldTraffic(
  store: Store,
  settings: Pick<Settings, 'telemetryHourlyRetentionDays' | 'packetRetentionDays' | 'messageRetentionDays'>,
  { now, pause, share = wholeSlices }: { now: number; pause: Pause; share?: Share },
): Promise<TrafficDeleted> {
  const prepared = queries(store)
  let goesOn = true
  const clear = async (deleteSlice: Parameters<typeof inSlices>[0]): Promise<number> => {
    if (!goesOn) return 0
    const done = await inSlices(deleteSlice, { full: SLICE_ROWS, pause, share })
    goesOn = done.goesOn && (await pause())
    return done.rows
  }
  const cutoff = (days: number) => now - days * DAY_MS
  const packetCutoff = cutoff(settings.packetRetentionDays)
  const log = await clear(async (rows) => {
    // The log is in the order of arrival: if its oldest row stays, all stay.
    const oldest = await prepared.oldest.get()
    const isOld = oldest !== undefined && oldest.t < packetCutoff
    return isOld ? await prepared.packets.all({ cutoff: packetCutoff, rows }) : []
  })
  if (goesOn) await prepared.packetHours.run({ before: packetCutoff - HOUR_MS })
  const routeCutoff = cutoff(settings.messageRetentionDays)
  const routes = await clear((rows) => prepared.traceroutes.all({ cutoff: routeCutoff, rows }))
  const unused = await clear((rows) => prepared.channels.all({ cutoff: routeCutoff, rows }))
  // Last, because a large mesh needs the most slices for it, even when there is nothing to delete.
  let hours = 0
  for await (const charts of listCharts(store, share)) {
    const range = { charts: JSON.stringify(charts), cutoff: cutoff(settings.telemetryHourlyRetentionDays) }
    hours += await clear((rows) => prepared.hours.all({ ...range, rows }))
    if (!goesOn) break
  }
  return { hours, packets: log, traceroutes: routes, channels: unused }
}

type Chart = { readonly nodeId: number; readonly metric: number }

async function* listCharts(store: Store, share: Share): AsyncGenerator<Chart[]> {
  const { charts } = queries(store)
  for (let last: Chart | undefined = { nodeId: 0, metric: 0 }; last !== undefined;) {
    const found: Chart[] = await charts.all({ ...last, most: partOf(SLICE_CHARTS, share()) })
    if (found.length > 0) yield found
    last = found.at(-1)
  }
}
