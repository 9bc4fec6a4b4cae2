import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { sources } from './sources.ts'
import { DELIVERY_STATES, DIRECTIONS } from '../../../shared/mesh/delivery-states.ts'
import { KEY_DOUBTS } from '../../../shared/mesh/packets.ts'

// Decision: docs/decisions/short-decisions.md#nodes-and-messages-are-unique-in-the-whole-service
export const messages = sqliteTable(
  'messages',
  {
    /** In order of arrival: the cursor of the list. */
    id: integer('id').primaryKey({ autoIncrement: true }),
    sourceId: integer('source_id').references(() => sources.id),
    packetId: integer('packet_id').notNull(),
    fromNodeNum: integer('from_node_num').notNull(),
    toNodeNum: integer('to_node_num').notNull(),
    channel: integer('channel').notNull(),
    text: text('text').notNull(),
    replyId: integer('reply_id'),
    emoji: flag('emoji').notNull().default(false),
    timestamp: integer('timestamp').notNull(),
    rxSnr: real('rx_snr'),
    rxRssi: integer('rx_rssi'),
    hopsAway: integer('hops_away'),
    viaMqtt: flag('via_mqtt').notNull().default(false),
    pkiEncrypted: flag('pki_encrypted').notNull().default(false),
    /** The sender's signature was verified. */
    signed: flag('signed').notNull().default(false),
    direction: text('direction', { enum: DIRECTIONS }).notNull(),
    deliveryState: text('delivery_state', {
      enum: DELIVERY_STATES,
    }),
    routingError: text('routing_error'),
    /** The text of the radio's notification about it. */
    notice: text('notice'),
    /** Username of the sender at that time, or `automation:<name>`; null for received messages. */
    sentBy: text('sent_by'),
    /** Its copies differ in the text, the recipient, or the answered message. */
    conflicting: flag('conflicting').notNull().default(false),
    /** Its sender does not allow it to be passed on, so it is not shown to anonymous callers. */
    withheld: flag('withheld').notNull().default(false),
    /** Why `pkiEncrypted` does not prove who sent it; null: there is no doubt. */
    keyDoubt: text('key_doubt', { enum: KEY_DOUBTS }),
    /** One of our own radios heard it off the air: what others deliver does not replace it. */
    heard: flag('heard').notNull().default(false),
    /** JSON: id of the source, gateway, t, SNR, RSSI and hops of its first reception. Null: see `receptions`. */
    firstReception: text('first_reception'),
  },
  (t) => [
    uniqueIndex('messages_from_packet').on(t.fromNodeNum, t.packetId),
    index('messages_timestamp').on(t.timestamp),
    index('messages_channel').on(t.channel, t.id),
    index('messages_signed')
      .on(t.id)
      .where(sql`signed`),
    index('messages_reactions')
      .on(t.replyId)
      .where(sql`emoji`),
    index('messages_failed')
      .on(t.id)
      .where(sql`routing_error is not null`),
    index('messages_unfinished')
      .on(t.id)
      .where(sql`delivery_state in ('queued', 'sent')`),
    index('messages_direct')
      .on(t.id)
      .where(sql`to_node_num <> 4294967295`),
    // Direct conversations: messages from and to one node.
    index('messages_direct_from')
      .on(t.fromNodeNum, t.id)
      .where(sql`to_node_num <> 4294967295`),
    index('messages_direct_to')
      .on(t.toNodeNum, t.id)
      .where(sql`to_node_num <> 4294967295`),
  ],
)

/**
 * Each path by which a message arrived: one of our other radios, or another gateway that published it. See also
 * `firstReception` of `messages`.
 */
export const receptions = sqliteTable(
  'receptions',
  {
    messageId: integer('message_id')
      .notNull()
      .references(() => messages.id, { onDelete: 'cascade' }),
    sourceId: integer('source_id').notNull(),
    /** Node number of the gateway; 0: the radio of the source itself. */
    gateway: integer('gateway').notNull(),
    t: integer('t').notNull(),
    rxSnr: real('rx_snr'),
    rxRssi: integer('rx_rssi'),
    hopsAway: integer('hops_away'),
    /** The differences from the stored message: names of `DIFFERENCES`, separated by commas; null: none. */
    differs: text('differs'),
  },
  (t) => [primaryKey({ columns: [t.messageId, t.sourceId, t.gateway] })],
)
