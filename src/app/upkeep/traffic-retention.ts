import { lt, sql } from 'drizzle-orm'
import { channels, packetHours, packets, traceroutes } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { HOUR_MS } from '../../shared/time.ts'
import { type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import type { Shares } from './retention.ts'
import { sweepCharts } from './charts.ts'
import { deleteOldPages } from './packet-pages.ts'

/** Rows deleted in one transaction, at most. */
const SLICE_ROWS = 1000

export type TrafficDeleted = {
  readonly hours: number
  readonly packets: number
  readonly traceroutes: number
  readonly channels: number
}

const value = sql.placeholder
const slice = sql`limit ${value('rows')}`

const queries = prepareOnce((db) => ({
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
 * Deletes old hourly values, logged packets, and traceroutes and unused channels as old as messages, in slices; awaits `pause`
 * after each, which returns whether to continue. The next run continues where this one stopped. Returns the number of
 * deleted rows.
 */
export async function deleteOldTraffic(
  store: Store,
  cutoffs: { readonly telemetry_hourly: number; readonly packets: number; readonly messages: number },
  { pause, share = wholeSlices, each, restMs = 0 }: { readonly pause: Pause; readonly share?: Share } & Shares,
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
  const packetCutoff = cutoffs.packets
  const log = await clearTable(async (rows) => {
    // The log is in the order of arrival: if its oldest row stays, all stay.
    const oldest = await prepared.oldest.get()
    const isOld = oldest !== undefined && oldest.t < packetCutoff
    return isOld ? await store.lazily(() => prepared.packets.all({ cutoff: packetCutoff, rows })) : []
  })
  const isCleared = goesOn
  goesOn ||= each !== undefined
  const own = each?.() ?? pause
  const packed = goesOn ? await deleteOldPages(store, packetCutoff, async () => (goesOn = await own())) : 0
  if (isCleared && goesOn) await prepared.packetHours.run({ before: packetCutoff - HOUR_MS })
  const routeCutoff = cutoffs.messages
  const routes = await clearTable((rows) => prepared.traceroutes.all({ cutoff: routeCutoff, rows }))
  const unused = await clearTable((rows) => prepared.channels.all({ cutoff: routeCutoff, rows }))
  const counts = { packets: log + packed, traceroutes: routes, channels: unused }
  goesOn ||= each !== undefined
  if (!goesOn) return { ...counts, hours: 0 }
  // Last, because a large mesh needs the most slices for it, even when there is nothing to delete.
  const hourly = { table: 'telemetry_hourly', cutoff: cutoffs.telemetry_hourly, restMs } as const
  const { rows: hours } = await sweepCharts(store, hourly, { pause: each?.() ?? pause, share })
  return { ...counts, hours }
}
