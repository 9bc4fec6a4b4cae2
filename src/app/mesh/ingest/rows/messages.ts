import { notInArray, sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { messages } from '../../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { WINDOW_MS } from '../duplicates/packet-window.ts'
import type { Refiling } from '../../radios/channel-table.ts'
import type { DIRECTIONS } from '../../../../shared/mesh/delivery-states.ts'
import type { KeyDoubt } from '../../../../shared/mesh/packets.ts'
import { OWN_KINDS } from '../../../../shared/mesh/link-kinds.ts'

/** One reception of a text. */
export type MessageRow = {
  readonly source: string
  readonly packetId: number
  readonly fromNodeNum: number
  readonly toNodeNum: number
  readonly channel: number
  readonly text: string
  readonly replyId: number | null
  readonly emoji: boolean
  readonly timestamp: number
  readonly rxSnr: number | null
  readonly rxRssi: number | null
  readonly hopsAway: number | null
  readonly viaMqtt: boolean
  readonly pkiEncrypted: boolean
  readonly signed: boolean
  readonly withheld: boolean
  readonly keyDoubt: KeyDoubt | null
  /** One of our own radios heard it off the air. */
  readonly heard: boolean
  readonly direction: (typeof DIRECTIONS)[number]
  /** Of this reception; see `ReceptionRow`. Null: it is none, because somebody sent an earlier text again. */
  readonly gateway: number | null
  readonly receivedAt: number
  readonly receivedHops: number | null
}

const VALUES = {
  id: sql`null`,
  sourceId: sql`(select id from sources where name = ${field('source')})`,
  packetId: field('packetId'),
  fromNodeNum: field('fromNodeNum'),
  toNodeNum: field('toNodeNum'),
  channel: field('channel'),
  text: field('text'),
  replyId: field('replyId'),
  emoji: field('emoji'),
  timestamp: field('timestamp'),
  rxSnr: field('rxSnr'),
  rxRssi: field('rxRssi'),
  hopsAway: field('hopsAway'),
  viaMqtt: field('viaMqtt'),
  pkiEncrypted: field('pkiEncrypted'),
  signed: field('signed'),
  direction: field('direction'),
  deliveryState: sql`null`,
  routingError: sql`null`,
  sentBy: sql`null`,
  notice: sql`null`,
  conflicting: sql`false`,
  withheld: field('withheld'),
  keyDoubt: field('keyDoubt'),
  heard: field('heard'),
  firstReception: sql`null`,
} satisfies Record<keyof typeof messages.$inferSelect, SQL>

const FIRST_RECEPTION = sql`(select iif(${field('gateway')} is not null, json_array(s.id, ${field('gateway')},
  ${field('receivedAt')}, ${field('rxSnr')}, ${field('rxRssi')}, ${field('receivedHops')}), null)
  from sources s where s.name = ${field('source')})`

// A later copy counts as a reception, never as a new message; the reception with the fewest hops is kept. A sent
// message stays unchanged. Copies are ranked: opened with the sender's key, signed, unproven, opened with another key.
// Within a rank, a radio's copy replaces a broker's.
const rankOf = (row: string) => `(case when ${row}key_doubt is not null then 0 when ${row}pki_encrypted then 6
  when ${row}signed then 4 else 2 end + ${row}heard)`
const IS_FIRMER = `(${rankOf('excluded.')} > ${rankOf('messages.')})`
const FEWER_HOPS = `(excluded.hops_away < coalesce(hops_away, 256)
  and (excluded.key_doubt is null or key_doubt is not null))`
const SAID = ['text', 'to_node_num', 'reply_id', 'emoji', 'pki_encrypted'] as const
const DIFFERS = `(${SAID.map((column) => `excluded.${column} is not ${column}`).join(' or ')})`
const REPLACES = `(${IS_FIRMER} and ${DIFFERS})`
const RECEPTION = sql.raw(`on conflict (from_node_num, packet_id) do update set
  ${['hops_away', 'rx_snr', 'rx_rssi', 'via_mqtt'].map((column) => `${column} = iif(${FEWER_HOPS}, excluded.${column}, ${column})`).join(', ')},
  ${SAID.map((column) => `${column} = iif(${IS_FIRMER}, excluded.${column}, ${column})`).join(', ')},
  channel = iif(${IS_FIRMER} and excluded.to_node_num <> to_node_num, excluded.channel, channel),
  ${['key_doubt', 'heard'].map((column) => `${column} = iif(${IS_FIRMER}, excluded.${column}, ${column})`).join(', ')},
  conflicting = max(conflicting, ${REPLACES}),
  signed = max(signed, excluded.signed), withheld = max(withheld, excluded.withheld)
  where direction = 'in' and (${FEWER_HOPS} or ${IS_FIRMER})`)

/** The channel on which our own radio heard a text. */
export type Filing = {
  readonly fromNodeNum: number
  readonly packetId: number
  readonly channel: number
  readonly heardAt: number
}

/** Messages that move to another channel in one transaction; the rest follows with the next batches. */
const REFILED_ROWS = 500

const MOVED = sql`(select m.id, p.value ->> 'to' as channel from json_each(${sql.placeholder('refilings')}) p
  cross join sources s on s.name = p.value ->> 'source'
  cross join messages m on m.channel = p.value ->> 'from' and m.source_id = s.id and not m.pki_encrypted
  limit ${sql.raw(String(REFILED_ROWS))}) moved`

// The limit keeps SQLite from merging the subquery into the update, which would then visit every message.
const FILED = sql`(select m.id, p.value ->> 'channel' as channel from json_each(${sql.placeholder('filings')}) p
  cross join messages m on m.from_node_num = p.value ->> 'fromNodeNum' and m.packet_id = p.value ->> 'packetId'
  cross join sources s on s.id = m.source_id and ${notInArray(sql`s.kind`, OWN_KINDS)}
  where m.direction = 'in' and not m.pki_encrypted and m.channel <> p.value ->> 'channel'
    and m.timestamp >= (p.value ->> 'heardAt') - ${sql.raw(String(WINDOW_MS))} limit -1) filed`

const queries = prepareOnce((db) => ({
  messages: prepareJsonInsert(db, messages, { values: VALUES, onConflict: RECEPTION }),
  withReception: prepareJsonInsert(db, messages, {
    values: { ...VALUES, firstReception: FIRST_RECEPTION },
    onConflict: RECEPTION,
  }),
  refile: db
    .update(messages)
    .set({ channel: sql`moved.channel` })
    .from(MOVED)
    .where(sql`messages.id = moved.id`)
    .prepare(),
  file: db
    .update(messages)
    .set({ channel: sql`filed.channel` })
    .from(FILED)
    .where(sql`messages.id = filed.id`)
    .prepare(),
}))

/** Statements that store texts, or their receptions. */
export function writeMessages(store: Store, rows: readonly MessageRow[]): Statement[] {
  const { messages: write, withReception } = queries(store)
  return rows.length === 0 ? [] : [store.packs ? withReception(rows) : write(rows)]
}

/** Statements that move texts from brokers to the channels that are now known for them. */
export function refileMessages(store: Store, refilings: readonly Refiling[]): Statement[] {
  return refilings.length === 0 ? [] : [bind(queries(store).refile, { refilings: JSON.stringify(refilings) })]
}

/** Statements that move texts, first received from a broker, to the channels on which our own radios heard them. */
export function fileMessages(store: Store, filings: readonly Filing[]): Statement[] {
  return filings.length === 0 ? [] : [bind(queries(store).file, { filings: JSON.stringify(filings) })]
}
