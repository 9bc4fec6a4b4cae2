import { integer, primaryKey, sqliteTable } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'

/**
 * Packets that anybody can send again and whose sender would still count as proven: where the packet log is packed, it
 * does not tell for long enough that they are known. WITHOUT ROWID in its migration.
 * Decision: docs/decisions/packed-on-the-edge.md
 */
export const provenPackets = sqliteTable(
  'proven_packets',
  {
    fromNodeNum: integer('from_node_num').notNull(),
    /** Never 0. */
    packetId: integer('packet_id').notNull(),
    /** When it arrived, in milliseconds, but at most six hours before its first delivery. */
    t: integer('t').notNull(),
    /** False: a key that is learned later, or another copy, may prove it. */
    proven: flag('proven').notNull(),
  },
  (t) => [primaryKey({ columns: [t.fromNodeNum, t.packetId] })],
)
