import type { Heard } from '../../heard/heard.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import { and, eq, isNotNull, lte, sql, type SQL } from 'drizzle-orm'
import {
  FIRST_OF_PAGES,
  hasPages,
  LAST_OF_PAGES,
  LAST_PACKET,
  packedById,
  packetsByKey,
  selectWithin,
} from '../../../../db/packet-log.ts'
import { packets } from '../../../../db/schema.ts'
import { literals } from '../../../../db/json-rows.ts'
import { type Db, prepareOnce, type Store } from '../../../../db/store.ts'
import { IS_CLAIMED } from '../../radios/source-table.ts'
import { type Arrival, WINDOW_MS, WINDOW_SIZE } from './packet-window.ts'
import { findInRecentPages, readRecentPages } from './recent-pages.ts'
import { OWN_KINDS } from '../../../../shared/mesh/link-kinds.ts'
import { UNREADABLE, type Trust } from '../../../../shared/mesh/packets.ts'

// A forged packet that uses the ID first does not block the sender's own packet.
const isGenuine = (trustLevel: SQL) => sql`${trustLevel} is not 'spoofed'`
const IS_GENUINE = isGenuine(sql`p.trust_level`)

const HAS_OWN_RADIO = sql`exists (select 1 from sources r where r.kind in (${literals(OWN_KINDS)})
  and r.local_node_num is not null)`

/** The columns of a reception, from the packet log as `p`. */
const ARRIVAL = {
  from: sql<number>`p.from_node_num`,
  id: sql<number>`p.packet_id`,
  at: sql<number>`p.t`,
  hopsAway: sql<number | null>`p.hops_away`,
  isReadable: sql<number>`p.payload ->> 'kind' not in (${literals(UNREADABLE)})`,
  // A packet that its sender's key decrypted is as certain as a signed one.
  trustLevel: sql<Trust>`coalesce(p.trust_level, iif(p.pki_encrypted and p.port is not null
    and p.source_id not in (select id from sources where kind = 'ingest'), 'signed', 'plain'))`,
  isHeard: sql<number>`not p.via_mqtt and p.gateway is null and p.source_id in (select id from sources
    where kind in (${literals(OWN_KINDS)}) or (local_node_num is not null and ${IS_CLAIMED}
      and not (${sql.placeholder('hasRadios')} and ${HAS_OWN_RADIO})))`,
} as const

const value = sql.placeholder
const size = sql.raw(String(WINDOW_SIZE))
/** Ids of pages that one statement searches: that takes 10 to 20 ms. */
const PART_IDS = 200_000
const IN_PART = sql`g.first_id > ${value('after')} and g.first_id <= ${value('until')}`
const windowMs = sql.raw(String(WINDOW_MS))

/** The packets with the senders and ids in `packets`, in the log or in a part of it. */
const prepareSeen = (db: Db, log: SQL) =>
  db
    .select(ARRIVAL)
    .from(
      sql`json_each(${value('packets')}) k cross join ${log} p
        on p.from_node_num = k.value ->> 'from' and p.packet_id = k.value ->> 'id'
          and abs(p.t - (k.value ->> 'at')) <= ${windowMs}
          and ${IS_GENUINE}`,
    )
    .orderBy(sql`p.t`)
    .prepare()

/** The log is in the order of arrival, so only its end is searched. */
const prepareRecent = (db: Db, latest: SQL) =>
  db
    .select(ARRIVAL)
    .from(sql`${latest} p`)
    .where(sql`p.t >= ${value('since')} and p.packet_id <> 0 and ${IS_GENUINE}`)
    .orderBy(sql`p.id`)
    .prepare()

const queries = prepareOnce((db) => ({
  seen: prepareSeen(db, sql`packets`),
  packedSeen: prepareSeen(db, sql`(${packedById(value('ids'))})`),
  recent: prepareRecent(db, sql`(select * from packets order by id desc limit ${size})`),
  packedRecent: prepareRecent(db, sql`(${selectWithin(sql`${LAST_PACKET} - ${size} + 1`, sql`${LAST_PACKET} + 1`)})`),
  pages: db
    .select({ first: sql<number>`coalesce(${FIRST_OF_PAGES}, 0)`, last: sql<number>`coalesce(${LAST_OF_PAGES}, 0)` })
    .from(sql`(select 1)`)
    .prepare(),
  newest: db
    .select({ id: sql<number>`coalesce(${LAST_PACKET}, 0)`.as('id') })
    .from(sql`(select 1)`)
    .prepare(),
  logged: db
    .select({ id: packets.id })
    .from(packets)
    .where(
      and(
        eq(packets.fromNodeNum, sql.placeholder('from')),
        eq(packets.packetId, sql.placeholder('packetId')),
        lte(packets.id, sql.placeholder('upTo')),
        isNotNull(packets.port),
        isGenuine(sql`${packets.trustLevel}`),
      ),
    )
    .limit(1)
    .prepare(),
  packedLogged: db
    .select({ id: sql<number>`p.id` })
    .from(sql`${packetsByKey(value('packets'), sql`${IN_PART} and g.first_id <= ${value('upTo')}`)} p`)
    .where(sql`p.id <= ${value('upTo')} and p.port is not null and ${IS_GENUINE}`)
    .limit(1)
    .prepare(),
}))

/** Packets of a batch that are already in the packet log, oldest first. `radios` as for `createIngest`. */
export async function readSeenPackets(
  store: Store,
  batch: readonly Heard[],
  radios: readonly string[] | null,
): Promise<Arrival[]> {
  const keys = batch.flatMap(({ event }) => {
    if (event.type !== 'packet' || event.packet.id === 0) return []
    return [{ from: event.packet.from, id: event.packet.id, at: event.receivedAt }]
  })
  if (keys.length === 0) return []
  const values = { packets: JSON.stringify(keys), hasRadios: Number(radios !== null) }
  const { seen, packedSeen } = queries(store)
  const [rows] = await Promise.all([seen.all(values), readRecentPages(store)])
  const { ids } = findInRecentPages(store, keys)
  const packed = ids.length === 0 ? [] : await packedSeen.all({ ...values, ids: JSON.stringify(ids) })
  return [...rows, ...packed]
    .toSorted((one, other) => one.at - other.at)
    .map((row) => ({ ...row, isReadable: row.isReadable === 1, isHeard: row.isHeard === 1 }))
}

/** The ids of pages in parts, the latest first, with a turn for others between two; at least one. */
async function* partsOf(store: Store): AsyncGenerator<{ readonly after: number; readonly until: number }> {
  const { first = 0, last = 0 } = (await queries(store).pages.get()) ?? {}
  for (let until = last; ;) {
    yield { after: until - PART_IDS, until }
    until -= PART_IDS
    if (until < first) return
    await nextTurn()
  }
}

/**
 * Logged packets since a time in milliseconds: at most the latest 50,000, oldest first. `radios` as for `createIngest`.
 */
export async function readRecentPackets(
  store: Store,
  since: number,
  radios: readonly string[] | null,
): Promise<Arrival[]> {
  const { recent, packedRecent } = queries(store)
  await readRecentPages(store)
  const isPacked = await hasPages(store)
  const rows = await (isPacked ? packedRecent : recent).all({ since, hasRadios: Number(radios !== null) })
  return rows.map((row) => ({ ...row, isReadable: row.isReadable === 1, isHeard: row.isHeard === 1 }))
}

/** Whether a packet was heard before now, and could be decoded. */
export function recallPackets(
  store: Store,
): (packet: { readonly from: number; readonly id: number }) => Promise<boolean> {
  const { newest, logged, packedLogged } = queries(store)
  const reading = (async () => (await newest.get())?.id ?? 0)()
  // The caller of the check handles a failure.
  reading.catch(() => {})
  return async ({ from, id }) => {
    if (id === 0) return false
    const upTo = await reading
    if (!(await hasPages(store))) return (await logged.get({ from, packetId: id, upTo })) !== undefined
    const packet = { packets: JSON.stringify([{ from, id }]), upTo }
    for await (const part of partsOf(store))
      if ((await packedLogged.get({ ...packet, ...part })) !== undefined) return true
    return false
  }
}
