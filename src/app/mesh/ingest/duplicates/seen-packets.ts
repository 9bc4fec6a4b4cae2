import type { Heard } from '../../heard/heard.ts'
import { and, eq, isNotNull, lte, sql, type SQL } from 'drizzle-orm'
import { packets } from '../../../../db/schema.ts'
import { literals } from '../../../../db/json-rows.ts'
import { prepareOnce, type Store } from '../../../../db/store.ts'
import { IS_CLAIMED } from '../../radios/source-table.ts'
import { type Arrival, WINDOW_MS, WINDOW_SIZE } from './packet-window.ts'
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

const queries = prepareOnce((db) => ({
  seen: db
    .select(ARRIVAL)
    .from(
      sql`json_each(${sql.placeholder('packets')}) k cross join packets p
        on p.from_node_num = k.value ->> 'from' and p.packet_id = k.value ->> 'id'
          and abs(p.t - (k.value ->> 'at')) <= ${sql.raw(String(WINDOW_MS))}
          and ${IS_GENUINE}`,
    )
    .orderBy(sql`p.t`)
    .prepare(),
  // The log is in the order of arrival, so only its end is searched.
  recent: db
    .select(ARRIVAL)
    .from(sql`(select * from packets order by id desc limit ${sql.raw(String(WINDOW_SIZE))}) p`)
    .where(sql`p.t >= ${sql.placeholder('since')} and p.packet_id <> 0 and ${IS_GENUINE}`)
    .orderBy(sql`p.id`)
    .prepare(),
  signed: db
    .select({ from: sql<number>`p.from_node_num`, id: sql<number>`p.packet_id` })
    .from(
      sql`json_each(${sql.placeholder('packets')}) k cross join packets p
        on p.from_node_num = k.value ->> 'from' and p.packet_id = k.value ->> 'id'
          and p.t < (k.value ->> 'at') - ${sql.raw(String(WINDOW_MS))} and ${IS_GENUINE}`,
    )
    .prepare(),
  newest: db
    .select({ id: sql<number>`coalesce(max(id), 0)` })
    .from(packets)
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
  const rows = await queries(store).seen.all({ packets: JSON.stringify(keys), hasRadios: Number(radios !== null) })
  return rows.map((row) => ({ ...row, isReadable: row.isReadable === 1, isHeard: row.isHeard === 1 }))
}

type Signed = { readonly from: number; readonly id: number; readonly at: number }

/**
 * Signed packets that were logged long before: anybody can replay a signed packet, and its signature is still valid.
 * When it first arrived, its key may have been unknown.
 */
export async function readRepeated(
  store: Store,
  arrivals: readonly Signed[],
): Promise<readonly { readonly from: number; readonly id: number }[]> {
  const keys = arrivals.filter(({ id }) => id !== 0)
  return keys.length === 0 ? [] : queries(store).signed.all({ packets: JSON.stringify(keys) })
}

/**
 * Logged packets since a time in milliseconds: at most the latest 50,000, oldest first. `radios` as for `createIngest`.
 */
export async function readRecentPackets(
  store: Store,
  since: number,
  radios: readonly string[] | null,
): Promise<Arrival[]> {
  const rows = await queries(store).recent.all({ since, hasRadios: Number(radios !== null) })
  return rows.map((row) => ({ ...row, isReadable: row.isReadable === 1, isHeard: row.isHeard === 1 }))
}

/** Whether a packet was heard before now, and could be decoded. */
export function recallPackets(
  store: Store,
): (packet: { readonly from: number; readonly id: number }) => Promise<boolean> {
  const { newest, logged } = queries(store)
  const reading = (async () => (await newest.get())?.id ?? 0)()
  // The caller of the check handles a failure.
  reading.catch(() => {})
  return async ({ from, id }) => {
    if (id === 0) return false
    return (await logged.get({ from, packetId: id, upTo: await reading })) !== undefined
  }
}
