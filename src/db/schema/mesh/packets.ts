import { sql } from 'drizzle-orm'
import { index, integer, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { TRUST_LEVELS } from '../../../shared/mesh/packets.ts'

/** The latest packets. When the log is full, the oldest are deleted. */
export const packets = sqliteTable(
  'packets',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    sourceId: integer('source_id').notNull(),
    t: integer('t').notNull(),
    packetId: integer('packet_id').notNull(),
    fromNodeNum: integer('from_node_num').notNull(),
    toNodeNum: integer('to_node_num').notNull(),
    gateway: integer('gateway'),
    channel: integer('channel').notNull(),
    port: integer('port'),
    rxSnr: real('rx_snr'),
    rxRssi: integer('rx_rssi'),
    hopsAway: integer('hops_away'),
    hopLimit: integer('hop_limit').notNull(),
    viaMqtt: flag('via_mqtt').notNull(),
    pkiEncrypted: flag('pki_encrypted').notNull(),
    replayed: flag('replayed').notNull(),
    /**
     * `own`: one of our radios reported it about itself; `signed`: the sender's signature was verified; `spoofed`:
     * another sender seems to have sent it in the sender's name.
     */
    trustLevel: text('trust_level', { enum: TRUST_LEVELS }),
    /** JSON: the decoded packet, without fields that may contain keys and passwords. */
    payload: text('payload').notNull(),
  },
  (t) => [
    index('packets_from').on(t.fromNodeNum, t.id),
    index('packets_port').on(t.port, t.id),
    index('packets_packet').on(t.fromNodeNum, t.packetId),
    index('packets_replayed')
      .on(t.id)
      .where(sql`replayed`),
  ],
)
