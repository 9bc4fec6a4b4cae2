import { and, gte, lte, sql } from 'drizzle-orm'
import { FIRST_PACKET, LAST_PACKET, packedWithin } from '../../../db/packet-log.ts'
import { messageHours, messages, packetHours } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Sight } from '../../../shared/access/scope.ts'
import { UNKNOWN_CHANNEL, WITHHELD } from '../../../shared/mesh/channels.ts'
import { canReadMessage, ofHiddenNode, ofVisibleNodes, type View } from '../../accounts/access/visible.ts'
import { HOUR_MS } from '../../../shared/time.ts'

/** The number of reported hours; the last one is the current hour. */
export const HOURS = 24

/** Packets heard in the hour that starts at `t`. */
export type TrafficHour = { readonly t: number; readonly messages: number; readonly packets: number }

// Drivers may bind a number as a REAL, which would match no hour.
const start = sql`cast(${sql.placeholder('start')} as integer)`
const hour = sql.raw(String(HOUR_MS))

/** Both queries return the same rows: the start of the hour, and messages as in `messageHours`. */
const messageQueries = (db: Db) => ({
  counted: db.select().from(messageHours).where(gte(messageHours.t, start)).prepare(),
  ofVisibleNodes: db
    .select({ t: sql<number>`hour`, counts: sql<string>`json_group_object(place, n)` })
    .from(
      sql`(select timestamp - timestamp % ${hour} as hour,
        iif(to_node_num = ${sql.raw(String(BROADCAST))}, (channel + ${sql.raw(String(WITHHELD))} * withheld) || '', 'direct') as place, count(*) as n
        from ${messages} where timestamp >= ${start} and ${ofVisibleNodes(messages.fromNodeNum, messages.toNodeNum)}
        group by 1, 2)`,
    )
    .groupBy(sql`hour`)
    .prepare(),
})

// The first ID of the latest hour that began before it. An index covers the IDs of replayed packets, which were heard
// earlier.
const FIRST = sql`(select first_id from packet_hours where t >= ${start} order by t limit 1)`
// Senders are in the keys of a page, so that most need not be opened.
const LEFT_OUT = sql`(
  select (select t from packet_hours where first_id <= p.id and t <= ${sql.placeholder('now')} order by t desc limit 1) as t
  from (
    select id from packets where replayed and id >= ${FIRST}
    union all
    select id from packets where ${ofHiddenNode(sql`from_node_num`)} and id >= ${FIRST} and not replayed
  union all
  select id from ${packedWithin(FIRST, sql`${LAST_PACKET} + 1`, sql`g.replayed`)} where replayed
  union all
  select id from ${packedWithin(
    FIRST,
    sql`${LAST_PACKET} + 1`,
    sql`exists (select 1 from json_each(${sql.placeholder('hiddenNodes')}) h
      where instr(g.keys, printf('"%08x', h.value)) > 0)`,
  )} where ${ofHiddenNode(sql`from_node_num`)} and not replayed
  ) p
)`

const packetQueries = (db: Db) => ({
  begun: db
    .select({
      t: packetHours.t,
      firstId: packetHours.firstId,
      oldest: FIRST_PACKET.as('oldest'),
      latest: LAST_PACKET.as('latest'),
    })
    .from(packetHours)
    .where(and(gte(packetHours.t, start), lte(packetHours.t, sql.placeholder('now'))))
    .orderBy(packetHours.t)
    .prepare(),
  leftOut: db
    .select({ t: sql<number>`t`, n: sql<number>`count(*)` })
    .from(LEFT_OUT)
    .groupBy(sql`t`)
    .prepare(),
})

const queries = prepareOnce((db) => ({ ...messageQueries(db), ...packetQueries(db) }))

/**
 * The queries for a view, to be run with `start`, `now` and `visibleValues`. If nodes are hidden, and for anonymous
 * callers, messages are counted from their rows, because the counters contain neither senders nor what is withheld.
 */
export function trafficQueries(store: Store, { hidden, isPublic }: View) {
  const { counted, ofVisibleNodes: seen, begun, leftOut } = queries(store)
  return { messages: hidden.size === 0 && isPublic !== true ? counted : seen, begun, leftOut }
}

/** Start of the first of so many hours until `now`: `start` of the queries. */
export function firstHour(now: number, hours = HOURS): number {
  return now - (now % HOUR_MS) - (hours - 1) * HOUR_MS
}

type Begun = {
  readonly t: number
  readonly firstId: number
  readonly oldest: number | null
  readonly latest: number | null
}

/** Whether the log goes back to before the first of these hours. */
export function isLoggedSince([first]: readonly Begun[]): boolean {
  return first !== undefined && first.oldest !== null && first.oldest < first.firstId
}

/**
 * The last hours by the clock (UTC), oldest first, from the results of the queries: messages that the scope includes,
 * and packets that are still in the log.
 */
export function trafficHours(
  start: number,
  scope: Sight,
  {
    messages: counted,
    begun,
    leftOut,
  }: {
    readonly messages: readonly { readonly t: number; readonly counts: string }[]
    readonly begun: readonly Begun[]
    readonly leftOut: readonly { readonly t: number; readonly n: number }[]
  },
  hours = HOURS,
): TrafficHour[] {
  const said = new Map(counted.map(({ t, counts }) => [t, countReadable(scope, counts)]))
  const logged = countLogged(begun)
  for (const { t, n } of leftOut) logged.set(t, (logged.get(t) ?? n) - n)
  return Array.from({ length: hours }, (_, index) => {
    const t = start + index * HOUR_MS
    return { t, messages: said.get(t) ?? 0, packets: logged.get(t) ?? 0 }
  })
}

/** IDs are in the order of arrival, so an hour ends before the first packet of any later one. */
function countLogged(begun: readonly Begun[]): Map<number, number> {
  const counts = new Map<number, number>()
  let after = Number.POSITIVE_INFINITY
  for (const { t, firstId, oldest, latest } of begun.toReversed()) {
    if (oldest === null || latest === null) continue
    counts.set(t, Math.max(0, Math.min(after, latest + 1) - Math.max(firstId, oldest)))
    after = Math.min(after, firstId)
  }
  return counts
}

function countReadable(scope: Sight, counts: string): number {
  const places: unknown = JSON.parse(counts)
  return Object.entries(Object(places)).reduce((sum, [place, n]) => {
    const isDirect = place === 'direct'
    const isRead = canReadMessage(scope, { channel: isDirect ? UNKNOWN_CHANNEL : Number(place), isDirect })
    return isRead ? sum + Number(n) : sum
  }, 0)
}
