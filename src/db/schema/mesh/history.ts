import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { CHANGED_FIELDS } from '../../../shared/mesh/node-changes.ts'

// What is known of the past of nodes, by their numbers: a node that continues under another number has several. Triggers
// on `nodes` delete the rows of a deleted node.

/**
 * What a node reported differently than before, the latest 100 of each node: written by a trigger on `nodes`. A first
 * value is no change.
 */
export const nodeChanges = sqliteTable(
  'node_changes',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    nodeNum: integer('node_num').notNull(),
    t: integer('t').notNull(),
    field: text('field', { enum: CHANGED_FIELDS }).notNull(),
    before: text('before').notNull(),
    /** Null: it was withdrawn. */
    after: text('after'),
    /** The channel on which it was reported, as in GET /api/channels; null: on any. */
    channel: integer('channel'),
  },
  (t) => [index('node_changes_of_node').on(t.nodeNum, t.id)],
)

/**
 * How often a node was heard on a day (UTC). Summarised from the log of packets; WITHOUT ROWID in its migration. The row
 * of node 0 says how far: its `packets` is the id of the last summarised packet.
 */
export const nodeDays = sqliteTable(
  'node_days',
  {
    nodeNum: integer('node_num').notNull(),
    /** Days since the epoch. */
    day: integer('day').notNull(),
    /** The packets of each of its 24 hours, separated by commas. */
    hours: text('hours').notNull(),
    packets: integer('packets').notNull(),
    /** How many of them came directly, without another node between. */
    direct: integer('direct').notNull(),
    /** The fewest and the most hops; null: unknown. */
    minHops: integer('min_hops'),
    maxHops: integer('max_hops'),
  },
  (t) => [primaryKey({ columns: [t.nodeNum, t.day] })],
)

/** By whom a node was heard, the latest 16 of each node. Summarised like `node_days`; WITHOUT ROWID in its migration. */
export const nodeReceivers = sqliteTable(
  'node_receivers',
  {
    nodeNum: integer('node_num').notNull(),
    sourceId: integer('source_id').notNull(),
    /** Node number of the gateway; 0: the radio of the source itself. */
    gateway: integer('gateway').notNull(),
    firstAt: integer('first_at').notNull(),
    lastAt: integer('last_at').notNull(),
    packets: integer('packets').notNull(),
    direct: integer('direct').notNull(),
    /** dB of the latest packet that came directly; null: none did. */
    snr: real('snr'),
    /** Hops of the latest packet; null: unknown. */
    hops: integer('hops'),
    /** The latest packet had passed a broker before. */
    viaMqtt: flag('via_mqtt').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.nodeNum, t.sourceId, t.gateway] }),
    index('node_receivers_last').on(t.sourceId, t.gateway, t.lastAt),
  ],
)
