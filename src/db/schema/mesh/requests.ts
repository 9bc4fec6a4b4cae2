import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { sources } from './sources.ts'
import { traceroutes } from './topology.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
import { REQUEST_KINDS } from '../../../shared/mesh/request-kinds.ts'

/** What this service asked nodes for: their position, measurements, names. */
export const nodeRequests = sqliteTable(
  'node_requests',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    sourceId: integer('source_id').references(() => sources.id),
    kind: text('kind', { enum: REQUEST_KINDS }).notNull(),
    /** Packet id of the request. */
    requestId: integer('request_id').notNull(),
    fromNodeNum: integer('from_node_num').notNull(),
    toNodeNum: integer('to_node_num').notNull(),
    timestamp: integer('timestamp').notNull(),
    answeredAt: integer('answered_at'),
    state: text('state', { enum: DELIVERY_STATES }).notNull(),
    routingError: text('routing_error'),
    /** The radio's message about it. */
    notice: text('notice'),
    requestedBy: text('requested_by').notNull(),
  },
  (t) => [
    uniqueIndex('node_requests_request').on(t.fromNodeNum, t.requestId),
    index('node_requests_asked').on(t.toNodeNum),
  ],
)

/** The nodes that answered a traceroute to all nodes in direct range. */
export const tracerouteAnswers = sqliteTable(
  'traceroute_answers',
  {
    tracerouteId: integer('traceroute_id')
      .notNull()
      .references(() => traceroutes.id, { onDelete: 'cascade' }),
    nodeNum: integer('node_num').notNull(),
    t: integer('t').notNull(),
    /** dB: how the node heard our radio. */
    snrTowards: real('snr_towards'),
    /** dB: how our radio heard the node. */
    snrBack: real('snr_back'),
  },
  (t) => [primaryKey({ columns: [t.tracerouteId, t.nodeNum] })],
)

/**
 * What a radio of ours and this service last agreed on: whether nodes are favourites, ignored or muted. A missing row
 * means none of it. The row of node 0 says that this radio was compared before.
 */
export const radioMarks = sqliteTable(
  'radio_marks',
  {
    radioNum: integer('radio_num').notNull(),
    nodeNum: integer('node_num').notNull(),
    isFavorite: flag('is_favorite').notNull().default(false),
    isIgnored: flag('is_ignored').notNull().default(false),
    isMuted: flag('is_muted').notNull().default(false),
    /** Why the radio did not take the latest change; null: it did, or has not been asked. */
    problem: text('problem'),
  },
  (t) => [primaryKey({ columns: [t.radioNum, t.nodeNum] })],
)
