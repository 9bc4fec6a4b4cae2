import { type Placeholder, sql, type SQL, Subquery } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { packetPages } from './schema.ts'
import { prepareOnce, type Store } from './store.ts'

// The packet log has two forms: a row for each packet, as Node writes it, and pages of many packets, as the edge does. A
// log may have both, because a backup of one can be restored on the other. Their ids are one sequence in the order of
// arrival.

/** The columns of `packets` in the order in which a page has them; its id follows from the place in the page. */
export const PACKED = [
  'source_id',
  't',
  'packet_id',
  'from_node_num',
  'to_node_num',
  'gateway',
  'channel',
  'port',
  'rx_snr',
  'rx_rssi',
  'hops_away',
  'hop_limit',
  'via_mqtt',
  'pki_encrypted',
  'replayed',
  'trust_level',
  'payload',
] as const

type Value = SQL | Placeholder | number

const { raw } = sql

/** The columns of a packet from an element of a page as JSON, without its id. */
const columnsOf = (element: string) => raw(PACKED.map((name, place) => `${element} ->> ${place} as ${name}`).join(', '))
const COLUMNS = raw(['id', ...PACKED].join(', '))

/** The first id of the page that contains an id, or of the first one after it. */
const pageOf = (id: Value) =>
  sql`coalesce((select x.first_id from packet_pages x where x.first_id <= ${id} order by x.first_id desc limit 1), 0)`

/** Whether the log may have pages. Where it can have none, a reader asks only the rows. */
export async function hasPages(store: Store): Promise<boolean> {
  return store.packs || (await anyPage(store).get()) !== undefined
}
const anyPage = prepareOnce((db) => db.select({ id: packetPages.firstId }).from(packetPages).limit(1).prepare())

/** A select with the columns of `packets`, in place of that table. */
function asPackets(select: SQL) {
  return new Subquery(select, {}, 'packets')
}

/**
 * Packets of pages with ids from `first` up to, but not including, `before`: `from` of a select, with the columns of
 * `packets` under its name. `pages`: a condition of the pages, as `g`, that are opened.
 */
export function packedWithin(first: Value, before: Value, pages: SQL = sql`true`) {
  return asPackets(sql`select g.first_id + e.key as id, ${columnsOf('e.value')}, g.first_id as page, e.key as place
    from packet_pages g cross join jsonb_each(g.body) e
    where g.first_id >= ${pageOf(first)} and g.first_id < ${before} and ${pages}
      and g.first_id + e.key >= ${first} and g.first_id + e.key < ${before} and e.value is not null`)
}

/** Whether a page, as `g`, has a packet of this sender. */
export const hasSender = (num: Value): SQL => sql`instr(g.keys, printf('"%08x', ${num})) > 0`

/** Ids that are searched for the latest packets of one node: where it sends little, each may be in a page of its own. */
const REACH = raw('500000')

/**
 * The latest packets of a node in pages, as `packedWithin`. Order them by `BY_PLACE` and limit them, so that no more pages
 * are opened. `first`, `last`: bounds of the ids.
 */
export function packedOf(num: Value, { first = 0, last = LAST_PACKET }: { first?: Value; last?: Value } = {}) {
  return packedWithin(sql`max(${first}, ${last} - ${REACH})`, sql`${last} + 1`, hasSender(num))
}

/** Latest first: pages are opened one after the other. */
export const BY_PLACE = sql`page desc, place desc`

/** Packets of both forms with ids from `first` up to, but not including, `before`, in no order, as a select. */
export function selectWithin(first: Value, before: Value): SQL {
  return sql`select ${COLUMNS} from packets where id >= ${first} and id < ${before} union all
    select ${COLUMNS} from ${packedWithin(first, before)}`
}

/** The same in place of the table, as `packedWithin`. */
export const packetsWithin = (first: Value, before: Value) => asPackets(selectWithin(first, before))

/** Sender and packet id as in the keys of a page. */
export const keyOf = (from: SQL, id: SQL): SQL => sql`printf('%08x%08x', ${from}, ${id})`

/** Packets of pages with one of these keys, a select of texts, with the columns of `packets`. `pages` as above. */
export function packedByKey(keys: SQL, pages: SQL): SQL {
  return sql`select g.first_id + e.key as id, ${columnsOf('(g.body -> e.key)')}
    from packet_pages g cross join json_each(g.keys) e where ${pages} and e.value in (${keys})`
}

/** Packets of pages with one of these ids, a JSON array, with the columns of `packets`: only their pages are opened. */
export function packedById(ids: Placeholder): SQL {
  return sql`select i.value as id, ${columnsOf('(g.body -> (i.value - g.first_id))')}
    from json_each(${ids}) i cross join packet_pages g on g.first_id = ${pageOf(sql`i.value`)}
    where g.body ->> (i.value - g.first_id) is not null`
}

/** Packets of both forms with one of the senders and packet ids in `keys`, JSON of `from` and `id`. `pages` as above. */
export function packetsByKey(keys: Placeholder, pages: SQL): SQL {
  const [from, id] = [sql`k.value ->> 'from'`, sql`k.value ->> 'id'`]
  return sql`(select ${raw(['id', ...PACKED].map((name) => `x.${name}`).join(', '))} from json_each(${keys}) k
    cross join packets x on x.from_node_num = ${from} and x.packet_id = ${id}
    union ${packedByKey(sql`select ${keyOf(from, id)} from json_each(${keys}) k`, pages)})`
}

/** SQLite's own table, of one row for each table whose ids are never used again. */
export const SEQUENCES = sqliteTable('sqlite_sequence', { name: text('name'), seq: integer('seq') })

export const FIRST_OF_PAGES = sql<number | null>`(select min(first_id) from packet_pages)`
export const LAST_OF_PAGES = sql<number | null>`(select last_id from packet_pages order by first_id desc limit 1)`

/** The lowest id of the log; null: it is empty. */
export const FIRST_PACKET = sql<number | null>`(select min(id) from (select min(id) as id from packets union all
  select ${FIRST_OF_PAGES}))`
/** The highest id of the log; null: it is empty. */
export const LAST_PACKET = sql<number | null>`(select max(id) from (select max(id) as id from packets union all
  select ${LAST_OF_PAGES}))`

/** The id before the next one: none is ever used again. */
export const LAST_ID = sql`max(coalesce(${LAST_OF_PAGES}, 0),
  coalesce((select max(seq) from sqlite_sequence where name = 'packets'), 0))`

/** Pages, as `g`, that are searched for a packet which arrived within hours: of the latest ones, and from `first` on. */
export const recentPages = (packets: number, first: Value = 0): SQL =>
  sql`g.first_id >= max(${first}, coalesce(${LAST_OF_PAGES}, 0) - ${raw(String(packets))} + 1)`

/** `id` and `t` of the first packet with at least this id, the first of `first`, as a select. */
export function packetFromId(id: Value): SQL {
  return sql`select id, t from (select * from (select id, t from packets where id >= ${id} order by id limit 1)
    union all select * from (select g.first_id + e.key as id, e.value ->> 1 as t
      from packet_pages g cross join jsonb_each(g.body) e
      where g.first_id >= ${pageOf(id)} and g.first_id + e.key >= ${id} and e.value is not null
      order by g.first_id, e.key limit 1)) order by id limit 1`
}

/** `id` and `t` of the latest packet, as a select. */
export const LATEST = sql`select id, t from (select * from (select id, t from packets order by id desc limit 1) union all
  select * from (select last_id as id, coalesce(body ->> '$[#-1][1]', t_last) as t from packet_pages where packets > 0
    order by first_id desc limit 1)) order by id desc limit 1`
