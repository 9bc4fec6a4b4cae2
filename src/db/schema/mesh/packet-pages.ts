import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * The packet log as the edge writes it, because each written row costs there: many packets in one row, in the order of
 * arrival. Their ids continue those of `packets`, and packets of both may be in one log.
 * Decision: docs/decisions/packed-on-the-edge.md
 */
export const packetPages = sqliteTable(
  'packet_pages',
  {
    /** The id of the first packet. The others follow without a gap. */
    firstId: integer('first_id').primaryKey(),
    lastId: integer('last_id').notNull(),
    /** Packets that are still there. */
    packets: integer('packets').notNull(),
    /** The earliest and the latest time. */
    tFirst: integer('t_first').notNull(),
    tLast: integer('t_last').notNull(),
    replayed: integer('replayed').notNull(),
    // A filter looks at these before it opens a page. Each has its values once.
    /** JSON: null for an undecrypted packet. */
    ports: text('ports').notNull(),
    /** JSON: numbers of nodes, without the broadcast address. */
    receivers: text('receivers').notNull(),
    /** JSON: `sender:source:gateway` of each verified signature. */
    signed: text('signed').notNull(),
    /** JSON: sender and packet id of each packet in hexadecimal; null for a deleted one. */
    keys: text('keys').notNull(),
    /** JSON: an array for each packet, in the order of `PACKED` in packet-log.ts; null for a deleted one. */
    body: text('body').notNull(),
  },
  (t) => [
    index('packet_pages_replayed')
      .on(t.firstId)
      .where(sql`replayed`),
  ],
)
