import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { sources } from './sources.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'

/** Traceroutes: requested by this service, or overheard. */
export const traceroutes = sqliteTable(
  'traceroutes',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    sourceId: integer('source_id').references(() => sources.id),
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
    /** JSON: node numbers and dB between the two ends, in the form of `Route`; null until there is an answer. */
    route: text('route'),
    /** Username of the requester; null for overheard ones. */
    requestedBy: text('requested_by'),
    /** The channel of its latest packet, as GET /api/channels numbers it; see `UNKNOWN_CHANNEL`. */
    channel: integer('channel').default(UNKNOWN_CHANNEL),
  },
  (t) => [
    uniqueIndex('traceroutes_request').on(t.fromNodeNum, t.requestId),
    index('traceroutes_answered').on(t.toNodeNum),
  ],
)

/** Who hears whom: the latest report of each node. */
export const neighbors = sqliteTable(
  'neighbors',
  {
    nodeNum: integer('node_num').notNull(),
    neighborNum: integer('neighbor_num').notNull(),
    snr: real('snr').notNull(),
    t: integer('t').notNull(),
    /** The channel of the report, like that of `traceroutes`. */
    channel: integer('channel').default(UNKNOWN_CHANNEL),
    /** One of our own radios heard the report, or it was signed: for a day, no other report replaces it. */
    heard: flag('heard').notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.nodeNum, t.neighborNum] })],
)

export const waypoints = sqliteTable(
  'waypoints',
  {
    id: integer('id').primaryKey(),
    fromNodeNum: integer('from_node_num').notNull(),
    t: integer('t').notNull(),
    name: text('name').notNull(),
    description: text('description').notNull(),
    icon: text('icon'),
    latitude: real('latitude').notNull(),
    longitude: real('longitude').notNull(),
    expiresAt: integer('expires_at'),
    lockedTo: integer('locked_to'),
    /** The channel of the waypoint, like that of `traceroutes`. */
    channel: integer('channel').default(UNKNOWN_CHANNEL),
    /** As for `neighbors`. */
    heard: flag('heard').notNull().default(false),
    /** Its fields that nothing here reads, such as a geofence, as they were sent: base64. */
    rest: text('rest').notNull().default(''),
  },
  (t) => [index('waypoints_sender').on(t.fromNodeNum)],
)
