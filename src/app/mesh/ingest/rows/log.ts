import { sql } from 'drizzle-orm'
import { packetHours, packetPages, packets } from '../../../../db/schema.ts'
import { insertSelect } from '../../../../db/insert-select.ts'
import { field, literals, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { keyOf, LAST_ID, packedById, packedByKey, recentPages, SEQUENCES } from '../../../../db/packet-log.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { BROADCAST } from '../../../../meshtastic/node-id.ts'
import { type Trust, type TrustLevel, UNREADABLE } from '../../../../shared/mesh/packets.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import { WINDOW_MS, WINDOW_SIZE } from '../duplicates/packet-window.ts'
import { findInRecentPages } from '../duplicates/recent-pages.ts'

/** Packets of a page, unless one delivery brings more. Each delivery writes its page again. */
export const PAGE_PACKETS = 200
/** A page ends when it is this long, or its first packet this old: it is deleted as a whole. */
const PAGE_LENGTH = 200_000
const PAGE_MS = HOUR_MS

/** A packet for the log; `payload` is JSON. */
export type PacketRow = {
  readonly source: string
  readonly t: number
  readonly packetId: number
  readonly fromNodeNum: number
  readonly toNodeNum: number
  readonly gateway: number | null
  readonly channel: number
  readonly port: number | null
  readonly rxSnr: number | null
  readonly rxRssi: number | null
  readonly hopsAway: number | null
  readonly hopLimit: number
  readonly viaMqtt: boolean
  readonly pkiEncrypted: boolean
  readonly replayed: boolean
  readonly trustLevel: Trust | TrustLevel
  readonly payload: string
  /** At least a part of it was decoded. */
  readonly isReadable: boolean
}

const { raw } = sql
const value = sql.placeholder

// Recognised by sender and ID, as in the packet window, or by content if it has no ID. A report of our radio about
// itself is not a copy of earlier reports by others.
const IS_LOGGED = sql`p.from_node_num = ${field('fromNodeNum')} and p.packet_id = ${field('packetId')}
    and iif(p.packet_id = 0, p.t = ${field('t')} and p.payload = ${field('payload')},
      abs(p.t - ${field('t')}) <= ${raw(String(WINDOW_MS))})
    and (p.trust_level is 'spoofed') = (${field('trustLevel')} = 'spoofed')
    and (${field('trustLevel')} <> 'own' or p.trust_level is 'own')
    and (not ${field('isReadable')} or p.payload ->> 'kind' not in (${literals(UNREADABLE)}))`
/** What pages have of the packets in rows `r`: as far as they are remembered, by id; then what others wrote since. */
const IN_PAGES = sql`${packedById(value('ids'))} union all
  ${packedByKey(
    sql`select ${keyOf(field('fromNodeNum'), field('packetId'))} from r`,
    sql`${recentPages(WINDOW_SIZE, value('newest'))} and g.last_id > ${value('upTo')}`,
  )}`
const TRUST_LEVEL = sql`nullif(${field('trustLevel')}, 'plain')`

const NAMES = ['t', 'packetId', 'fromNodeNum', 'toNodeNum', 'gateway', 'channel', 'port', 'rxSnr', 'rxRssi'] as const
const MORE_NAMES = ['hopsAway', 'hopLimit', 'viaMqtt', 'pkiEncrypted', 'replayed'] as const
const FIELDS = Object.fromEntries([...NAMES, ...MORE_NAMES, 'payload'].map((name) => [name, field(name)]))
const ROW_VALUES = { ...FIELDS, trustLevel: TRUST_LEVEL, id: sql`null`, sourceId: sql`s.id` }
const OF_SOURCE = sql`cross join sources s on s.name = ${field('source')}`
/** A packet as in a page, in the order of `PACKED`. */
const ELEMENT = sql`json_array(s.id, ${sql.join([...NAMES, ...MORE_NAMES].map(field), sql`, `)}, ${TRUST_LEVEL},
  json(${field('payload')}))`

const hourOf = (t: string) => `cast(${t} as integer) - ${t} % ${HOUR_MS}`

// The delivery goes on in the newest page if that has room. One statement decides and writes, so that none of two at
// once overwrites the other.
const PAGE_OF_DELIVERY = sql`with r as materialized (select key as place, value as j from jsonb_each(${value('rows')})),
  newest as (select ${LAST_ID} as last),
  page as materialized (select newest.last, g.first_id from newest left join packet_pages g
    on g.first_id = (select max(first_id) from packet_pages) and g.last_id = newest.last
      and (g.packets = 0 or (g.last_id - g.first_id + 1 + ${value('count')} <= ${raw(String(PAGE_PACKETS))}
        and length(g.body) < ${raw(String(PAGE_LENGTH))} and g.t_first > ${value('from')} - ${raw(String(PAGE_MS))}))),
  p as materialized (${IN_PAGES}),
  n as materialized (select r.place, ${ELEMENT} as element, ${keyOf(field('fromNodeNum'), field('packetId'))} as key,
      ${field('t')} as t, ${field('replayed')} as replayed, ${field('port')} as port, ${field('toNodeNum')} as receiver,
      iif(${field('trustLevel')} = 'signed', ${field('fromNodeNum')} || ':' || s.id || ':'
        || coalesce(${field('gateway')}, ''), null) as way
    from r cross join sources s on s.name = ${field('source')}
    where not exists (select 1 from p where ${IS_LOGGED}) and not exists (select 1 from packets p where ${IS_LOGGED}))`

const setOf = (column: string, where = 'true') => raw(`json_group_array(distinct ${column}) filter (where ${where})`)
const union = (column: string) =>
  raw(`(select json_group_array(value) from (select value from json_each(packet_pages.${column}) union
    select value from json_each(excluded.${column})))`)
const append = (column: string) =>
  raw(`${column} = iif(${column} = '[]', excluded.${column},
    substr(${column}, 1, length(${column}) - 1) || ',' || substr(excluded.${column}, 2))`)

const queries = prepareOnce((db) => ({
  rows: prepareJsonInsert(db, packets, {
    values: ROW_VALUES,
    from: sql`${OF_SOURCE} and not exists (select 1 from packets p where ${IS_LOGGED})`,
    onConflict: sql``,
  }),
  rowsBesidePages: prepareJsonInsert<{ readonly ids: string; readonly newest: number; readonly upTo: number }>(
    db,
    packets,
    {
      values: ROW_VALUES,
      more: sql`, packed as materialized (${IN_PAGES})`,
      from: sql`${OF_SOURCE} and not exists (select 1 from packets p where ${IS_LOGGED})
      and not exists (select 1 from packed p where ${IS_LOGGED})`,
      onConflict: sql``,
    },
  ),
  // A log that was written on the edge has pages with later ids.
  sequence: db
    .update(SEQUENCES)
    .set({ seq: sql`${LAST_ID}` })
    .where(sql`name = 'packets' and seq < ${LAST_ID}`)
    .prepare(),
  pages: db
    .insert(packetPages)
    .select(
      sql`${PAGE_OF_DELIVERY}
        select coalesce(page.first_id, page.last + 1), page.last + count(*), count(*), min(n.t), max(n.t),
          sum(n.replayed), ${setOf('n.port')}, ${setOf('n.receiver', `n.receiver <> ${BROADCAST}`)},
          ${setOf('n.way', 'n.way is not null')}, json_group_array(n.key order by n.place),
          json_group_array(json(n.element) order by n.place)
        from page cross join n where true group by page.last
        on conflict (first_id) do update set last_id = excluded.last_id, packets = packets + excluded.packets,
          t_first = iif(packets = 0, excluded.t_first, min(t_first, excluded.t_first)),
          t_last = iif(packets = 0, excluded.t_last, max(t_last, excluded.t_last)),
          replayed = replayed + excluded.replayed, ports = ${union('ports')}, receivers = ${union('receivers')},
          signed = ${union('signed')}, ${append('keys')}, ${append('body')}`,
    )
    .prepare(),
  // As the trigger of the rows does. An hour begins again if the clock was set back meanwhile. The pages are only read if
  // the hour of the delivery is not known.
  hours: insertSelect(
    db,
    packetHours,
    { t: sql`h`, firstId: sql`iif(exists (select 1 from packet_hours x where x.t = h), max(id), min(id))` },
    sql`from (select id, h, lag(h) over (order by id) as before from (
        select g.first_id + e.key as id, ${raw(hourOf('(e.value ->> 1)'))} as h
        from packet_pages g cross join jsonb_each(g.body) e
        where not exists (select 1 from packet_hours x where x.t = ${value('hour')} and x.first_id >= coalesce(
            (select y.first_id from packet_hours y where y.t < x.t order by y.t desc limit 1), 0))
          and g.first_id in (select first_id from packet_pages order by first_id desc limit 2)
          and e.value is not null and not e.value ->> 14))
      where h > coalesce(before, -1)
      group by h on conflict (t) do update set first_id = excluded.first_id where first_id < coalesce(
        (select y.first_id from packet_hours y where y.t < excluded.t order by y.t desc limit 1), 0)`,
  ).prepare(),
}))

/** Statements that log packets which are not in the log yet. Their sources exist. */
export function writeLog(store: Store, rows: readonly PacketRow[]): Statement[] {
  const prepared = queries(store)
  if (rows.length === 0) return []
  const arrived = rows.map(({ fromNodeNum, packetId, t }) => ({ from: fromNodeNum, id: packetId, at: t }))
  const { ids, newest, upTo, hasPages } = findInRecentPages(store, arrived)
  if (!hasPages) return [prepared.rows(rows)]
  const packed = { ids: JSON.stringify(ids), newest, upTo }
  if (!store.packs) return [bind(prepared.sequence, {}), prepared.rowsBesidePages(rows, packed)]
  const from = rows.reduce((earliest, { t }) => Math.min(earliest, t), Number.MAX_SAFE_INTEGER)
  const lastHeard = rows.reduce((latest, { t, replayed }) => (replayed ? latest : Math.max(latest, t)), 0)
  const pages = bind(prepared.pages, { ...packed, rows: JSON.stringify(rows), count: rows.length, from })
  const hour = lastHeard - (lastHeard % HOUR_MS)
  return lastHeard === 0 ? [pages] : [pages, bind(prepared.hours, { hour })]
}
