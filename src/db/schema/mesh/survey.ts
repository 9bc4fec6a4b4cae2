import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

// What the log of packets and the traceroutes say about the mesh, by the numbers of nodes. Triggers on `nodes` delete the
// rows of a deleted node.

/** How far the log of packets is surveyed: one row. */
export const survey = sqliteTable('survey', {
  id: integer('id').primaryKey(),
  /** Id of the last surveyed packet. */
  packetId: integer('packet_id').notNull(),
  /** Changes with the tables below. */
  version: integer('version').notNull(),
})

/**
 * How receivers heard a node at a place: positions that it sent to all. The place is a cell of the grid in which the
 * firmware rounds positions, never smaller than the position's own precision.
 */
export const coverage = sqliteTable(
  'coverage',
  {
    id: integer('id').primaryKey(),
    nodeNum: integer('node_num').notNull(),
    sourceId: integer('source_id').notNull(),
    /** Node number of the gateway; 0: the radio of the source itself. */
    gateway: integer('gateway').notNull(),
    /** The channel of the positions, as in GET /api/channels. */
    channel: integer('channel').notNull(),
    /** Bits of the coordinates that count; x and y are these bits of longitude and latitude, signed. */
    bits: integer('bits').notNull(),
    x: integer('x').notNull(),
    y: integer('y').notNull(),
    packets: integer('packets').notNull(),
    /** JSON: how many packets came directly with which signal, in whole dB. */
    snr: text('snr').notNull(),
    /** JSON: the same in whole dBm. */
    rssi: text('rssi').notNull(),
    bestSnr: real('best_snr'),
    /** The fewest and the most hops; null: unknown. */
    minHops: integer('min_hops'),
    maxHops: integer('max_hops'),
    lastAt: integer('last_at').notNull(),
  },
  (t) => [uniqueIndex('coverage_place').on(t.nodeNum, t.sourceId, t.gateway, t.channel, t.bits, t.x, t.y)],
)

/** Who heard whom directly, by packets to all: the latest 32 receivers of each node. WITHOUT ROWID in its migration. */
export const heardLinks = sqliteTable(
  'heard_links',
  {
    fromNodeNum: integer('from_node_num').notNull(),
    /** The gateway or radio that received. */
    toNodeNum: integer('to_node_num').notNull(),
    packets: integer('packets').notNull(),
    /** dB of the latest packet; null: unknown. */
    snr: real('snr'),
    t: integer('t').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.fromNodeNum, t.toNodeNum] }),
    index('heard_links_t').on(t.t),
    index('heard_links_to').on(t.toNodeNum),
  ],
)

/** The hops of traceroutes, the latest of each direction and channel. WITHOUT ROWID in its migration. */
export const routeLinks = sqliteTable(
  'route_links',
  {
    fromNodeNum: integer('from_node_num').notNull(),
    /** The node that received. */
    toNodeNum: integer('to_node_num').notNull(),
    /** The channel of the traceroute; see its table. */
    channel: integer('channel').notNull(),
    /** The ends of the traceroute: who may not see them does not see its hops. */
    startNum: integer('start_num').notNull(),
    endNum: integer('end_num').notNull(),
    snr: real('snr'),
    t: integer('t').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.fromNodeNum, t.toNodeNum, t.channel] }),
    index('route_links_t').on(t.t),
    index('route_links_to').on(t.toNodeNum),
  ],
)
