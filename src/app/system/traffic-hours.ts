import { and, gte, sql, type SQL } from 'drizzle-orm'
import { messages } from '../../db/schema.ts'
import { type Db, prepareOnce } from '../../db/store.ts'
import { visibleMessages } from '../sharing/visible.ts'
import { HOUR_MS } from '../../shared/time.ts'

/** Reported hours; the last one is the current hour. */
const HOURS = 24

/** Packets heard in the hour from `t` on. */
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
  select lo as first, lead(lo) over (order by hour) as after from search where lo = hi order by hour limit ${sql.raw(String(HOURS))}
)`

const countMessages = (db: Db, isSeen?: SQL) =>
  db
    .select({ hour: sql<number>`(timestamp - ${start}) / ${hour}`.as('hour'), n: sql<number>`count(*)` })
    .from(messages)
    .where(and(gte(messages.timestamp, start), isSeen))
    .groupBy(sql`1`)
    .prepare()

export const trafficQueries = prepareOnce((db) => ({
  messages: countMessages(db),
  // Packets from a radio's memory were heard before; an index covers the IDs.
  packets: db
    .select({
      n: sql<number>`after - first
        - (select count(*) from packets p where p.replayed and p.id >= first and p.id < after)`,
    })
    .from(PACKET_SEARCH)
    .prepare(),
}))

/** The same for views that do not see everything. */
export const seenTrafficQueries = prepareOnce((db) => ({
  messages: countMessages(db, visibleMessages),
  packets: db
    .select({
      n: sql<number>`after - first
        - (select count(*) from packets p where p.replayed and p.id >= first and p.id < after)
        - (select count(*) from packets p where p.from_node_num in
            (select value from json_each(${sql.placeholder('hiddenNodes')}))
          and p.id >= first and p.id < after and not p.replayed)`,
    })
    .from(PACKET_SEARCH)
    .prepare(),
}))

/** Begin of the first hour that is told at `now`: `start` of the queries. */
export function firstHour(now: number): number {
  return now - (now % HOUR_MS) - (HOURS - 1) * HOUR_MS
}

/**
 * The last 24 hours of the clock (UTC), oldest first, from the results of the queries. Packets are those still in the
 * log.
 */
export function trafficHours(
  start: number,
  messages: readonly { readonly hour: number; readonly n: number }[],
  packets: readonly { readonly n: number }[],
): TrafficHour[] {
  const said = new Map(messages.map(({ hour, n }) => [hour, n]))
  return Array.from({ length: HOURS }, (_, hour) => ({
    t: start + hour * HOUR_MS,
    messages: said.get(hour) ?? 0,
    packets: packets[hour]?.n ?? 0,
  }))
}
