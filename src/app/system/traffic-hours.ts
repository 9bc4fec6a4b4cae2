import { gte, sql } from 'drizzle-orm'
import { messages } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'

const HOUR_MS = 3_600_000
/** Hours told of; the last one is the hour that it is. */
const HOURS = 24

/** What was heard from `t` on, for an hour. */
export type TrafficHour = { readonly t: number; readonly messages: number; readonly packets: number }

// Drivers may bind a number as a REAL, and then nothing is an hour.
const start = sql`cast(${sql.placeholder('start')} as integer)`
const hour = sql.raw(String(HOUR_MS))

// The log is in the order of arrival and has no index by time: each hour's first packet is found by halving the ids.
const PACKET_SEARCH = sql`(
  with recursive search(hour, t, lo, hi) as (
    select h.value, ${start} + h.value * ${hour},
      (select coalesce(min(id), 0) from packets), (select coalesce(max(id) + 1, 0) from packets)
    from json_each(${JSON.stringify([...Array(HOURS + 1).keys()])}) h
    union all
    select hour, t,
      iif((select p.t from packets p where p.id >= (lo + hi) / 2 order by p.id limit 1) < search.t, (lo + hi) / 2 + 1, lo),
      iif((select p.t from packets p where p.id >= (lo + hi) / 2 order by p.id limit 1) < search.t, hi, (lo + hi) / 2)
    from search where lo < hi
  )
  select hour, lo from search where lo = hi order by hour
)`

const queries = prepareOnce((db) => ({
  messages: db
    .select({ hour: sql<number>`(timestamp - ${start}) / ${hour}`.as('hour'), n: sql<number>`count(*)` })
    .from(messages)
    .where(gte(messages.timestamp, start))
    .groupBy(sql`1`)
    .prepare(),
  packets: db
    .select({ first: sql<number>`lo` })
    .from(PACKET_SEARCH)
    .prepare(),
}))

/** The last 24 hours of the clock (UTC), oldest first. Packets are those that the log still has. */
export async function readTrafficHours(store: Store, now: number): Promise<TrafficHour[]> {
  const start = now - (now % HOUR_MS) - (HOURS - 1) * HOUR_MS
  const said = new Map((await queries(store).messages.all({ start })).map(({ hour, n }) => [hour, n]))
  const firsts = (await queries(store).packets.all({ start })).map(({ first }) => first)
  return Array.from({ length: HOURS }, (_, hour) => ({
    t: start + hour * HOUR_MS,
    messages: said.get(hour) ?? 0,
    packets: (firsts[hour + 1] ?? 0) - (firsts[hour] ?? 0),
  }))
}
