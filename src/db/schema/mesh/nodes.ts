import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { SUSPICIONS } from '../../../shared/mesh/packets.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { flag } from '../flag.ts'

/** The latest known state of each node. `nodeNum` is an unsigned 32-bit number, the same on every source. */
export const nodes = sqliteTable(
  'nodes',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    nodeNum: integer('node_num').notNull().unique(),
    longName: text('long_name'),
    shortName: text('short_name'),
    hwModel: integer('hw_model'),
    role: integer('role'),
    isLicensed: flag('is_licensed').notNull().default(false),
    /** Base64, as in protobuf JSON. */
    publicKey: text('public_key'),
    /** The first key seen, kept when a different one is announced later. */
    previousPublicKey: text('previous_public_key'),
    keyMismatch: flag('key_mismatch').notNull().default(false),
    /** The latest key that was announced in the node's name and not accepted. */
    refusedPublicKey: text('refused_public_key'),
    spoofSuspected: flag('spoof_suspected').notNull().default(false),
    /** What raised the suspicion. It ends when the node itself sends the same data. `*`: several claims. */
    spoofClaim: text('spoof_claim'),
    /** When the latest packet arrived whose signature `publicKey` verified. */
    signedAt: integer('signed_at'),
    /** Which data was signed: only signed data, or our own radio, replaces it. */
    keySigned: flag('key_signed').notNull().default(false),
    nameSigned: flag('name_signed').notNull().default(false),
    positionSigned: flag('position_signed').notNull().default(false),
    latitude: real('latitude'),
    longitude: real('longitude'),
    altitude: real('altitude'),
    precisionBits: integer('precision_bits'),
    positionTime: integer('position_time'),
    batteryLevel: real('battery_level'),
    voltage: real('voltage'),
    channelUtilization: real('channel_utilization'),
    airUtilTx: real('air_util_tx'),
    uptimeSeconds: integer('uptime_seconds'),
    deviceMetricsTime: integer('device_metrics_time'),
    /** dB and dBm of the node's own transmitter, so only from packets heard directly. */
    snr: real('snr'),
    rssi: integer('rssi'),
    hopsAway: integer('hops_away'),
    lastHeard: integer('last_heard'),
    firstHeard: integer('first_heard').notNull(),
    viaMqtt: flag('via_mqtt').notNull().default(false),
    channel: integer('channel'),
    isFavorite: flag('is_favorite').notNull().default(false),
    isIgnored: flag('is_ignored').notNull().default(false),
    isMuted: flag('is_muted').notNull().default(false),
    isLocal: flag('is_local').notNull().default(false),
    notes: text('notes').notNull().default(''),
    /** Distinct days, UTC, on which it was heard; null: not counted yet, see `evidence.ts`. */
    daysHeard: integer('days_heard'),
    /** The latest of these days, in days since the epoch. */
    lastHeardDay: integer('last_heard_day'),
    /** Heard by one of our radios, not only reported by a broker. */
    heardByRadio: flag('heard_by_radio').notNull().default(false),
    /** Source that reported it first. */
    sourceId: integer('source_id'),
    /** The channel of the position, numbered as in GET /api/channels; see `UNKNOWN_CHANNEL`. */
    positionChannel: integer('position_channel').default(UNKNOWN_CHANNEL),
    /** The channel of all device metrics. */
    metricsChannel: integer('metrics_channel').default(UNKNOWN_CHANNEL),
    /** Only users who may change nodes see the node and what it sends. */
    isHidden: flag('is_hidden').notNull().default(false),
    /** The revision of the nodes at the latest change of this one, set by triggers. */
    revision: integer('revision').notNull().default(0),
    /** As the node reported it over its own connection, or for maps. */
    firmwareVersion: text('firmware_version'),
    /** Which data one of our own radios heard. A broker replaces it only with a signature. */
    keyHeard: flag('key_heard').notNull().default(false),
    nameHeard: flag('name_heard').notNull().default(false),
    positionHeard: flag('position_heard').notNull().default(false),
    /** Somebody decided that `publicKey` is the right one. Nothing that is heard replaces it. */
    keyConfirmed: flag('key_confirmed').notNull().default(false),
    /** `lastHeard` is the later of both. */
    lastHeardByRadio: integer('last_heard_by_radio'),
    lastHeardByBroker: integer('last_heard_by_broker'),
    /** The newest time in its telemetry, by its own clock. */
    telemetryTime: integer('telemetry_time'),
    /** The latest names that were announced and not accepted. */
    refusedLongName: text('refused_long_name'),
    refusedShortName: text('refused_short_name'),
    /** One of our own radios heard what was refused: nobody else's word hides it. */
    refusedHeard: flag('refused_heard').notNull().default(false),
    /** One of our own radios heard the device metrics. */
    metricsHeard: flag('metrics_heard').notNull().default(false),
    /** Control characters or invisible ones were removed from its names. */
    nameAltered: flag('name_altered').notNull().default(false),
    /** A text that its owner shows to others; empty: withdrawn. Null: there never was one. */
    status: text('status'),
    /** When it was heard. */
    statusTime: integer('status_time'),
    /** The channel of the status; see `UNKNOWN_CHANNEL`. */
    statusChannel: integer('status_channel').default(UNKNOWN_CHANNEL),
    statusSigned: flag('status_signed').notNull().default(false),
    statusHeard: flag('status_heard').notNull().default(false),
    /**
     * The latest hearing, of those that `channelHearings` has: its row there is older, as a row of its own would be one
     * more write for each packet. A trigger moves it there when another channel takes its place.
     */
    publicChannel: integer('public_channel'),
    publicHeard: integer('public_heard'),
    publicHops: integer('public_hops'),
    publicViaMqtt: flag('public_via_mqtt'),
  },
  (t) => [
    index('nodes_last_heard').on(t.lastHeard),
    index('nodes_local')
      .on(t.deviceMetricsTime)
      .where(sql`is_local`),
    index('nodes_suspected')
      .on(t.nodeNum)
      .where(sql`spoof_suspected`),
    index('nodes_status')
      .on(t.nodeNum)
      .where(sql`status is not null`),
    index('nodes_hidden')
      .on(t.nodeNum)
      .where(sql`is_hidden`),
  ],
)

/**
 * Why a node is suspected of being imitated, by source and gateway. The rows expire, and with the last one the node's
 * mark. WITHOUT ROWID in its migration.
 */
export const suspicions = sqliteTable(
  'suspicions',
  {
    nodeNum: integer('node_num').notNull(),
    sourceId: integer('source_id').notNull(),
    /** Node number of the gateway; 0: the radio of the source itself. */
    gateway: integer('gateway').notNull(),
    reason: text('reason', { enum: SUSPICIONS }).notNull(),
    /** See `spoofClaim` of `nodes`. */
    claim: text('claim').notNull(),
    count: integer('count').notNull(),
    firstAt: integer('first_at').notNull(),
    lastAt: integer('last_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeNum, t.sourceId, t.gateway, t.reason] }), index('suspicions_last').on(t.lastAt)],
)

/**
 * What was announced in the name of a node and not accepted, the latest from each source. `nodes` has the best founded
 * one; when nothing is refused there, a trigger deletes these. WITHOUT ROWID in its migration.
 */
export const refusedIdentities = sqliteTable(
  'refused_identities',
  {
    nodeNum: integer('node_num').notNull(),
    sourceId: integer('source_id').notNull(),
    /** One of our own radios heard it off the air. */
    heard: flag('heard').notNull(),
    publicKey: text('public_key'),
    longName: text('long_name'),
    shortName: text('short_name'),
    /** Node number of the gateway; 0: the radio of the source itself. */
    gateway: integer('gateway').notNull(),
    lastAt: integer('last_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeNum, t.sourceId, t.heard] })],
)

/**
 * The latest position of a node on a channel, while `nodes` has one from another channel. Maintained by a trigger on
 * `nodes`.
 */
export const channelPositions = sqliteTable(
  'channel_positions',
  {
    nodeId: integer('node_id').notNull(),
    /** Numbered as in GET /api/channels. */
    channel: integer('channel').notNull(),
    latitude: real('latitude').notNull(),
    longitude: real('longitude').notNull(),
    altitude: real('altitude'),
    precisionBits: integer('precision_bits'),
    t: integer('t'),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.channel] })],
)

/** The latest device metrics of a node on a channel, like `channelPositions`. */
export const channelMetrics = sqliteTable(
  'channel_metrics',
  {
    nodeId: integer('node_id').notNull(),
    channel: integer('channel').notNull(),
    batteryLevel: real('battery_level'),
    voltage: real('voltage'),
    channelUtilization: real('channel_utilization'),
    airUtilTx: real('air_util_tx'),
    uptimeSeconds: integer('uptime_seconds'),
    t: integer('t'),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.channel] })],
)

/** The latest status of a node on a channel, like `channelPositions`. */
export const channelStatuses = sqliteTable(
  'channel_statuses',
  {
    nodeId: integer('node_id').notNull(),
    channel: integer('channel').notNull(),
    status: text('status').notNull(),
    t: integer('t'),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.channel] })],
)

/**
 * When a node was heard on a channel by packets that it sent to all and allows to be passed on. Anonymous callers may
 * know only these. The latest one of a node is in `nodes`. A trigger there deletes the rows of a deleted node.
 */
export const channelHearings = sqliteTable(
  'channel_hearings',
  {
    nodeId: integer('node_id').notNull(),
    /** Numbered as in GET /api/channels. */
    channel: integer('channel').notNull(),
    firstHeard: integer('first_heard').notNull(),
    lastHeard: integer('last_heard').notNull(),
    /** The hops of the latest packet. */
    hopsAway: integer('hops_away'),
    viaMqtt: flag('via_mqtt').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.channel] })],
)

/**
 * WITHOUT ROWID in its migration. Rows of a deleted node wait until they are removed in slices, like those of
 * `telemetry`.
 */
export const positions = sqliteTable(
  'positions',
  {
    nodeId: integer('node_id').notNull(),
    t: integer('t').notNull(),
    latitude: real('latitude').notNull(),
    longitude: real('longitude').notNull(),
    altitude: real('altitude'),
    precisionBits: integer('precision_bits'),
    /** Its channel, numbered as in GET /api/channels; see `UNKNOWN_CHANNEL`. */
    channel: integer('channel').default(UNKNOWN_CHANNEL),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.t] })],
)

/** Nodes that continue under another number, together with their history. */
export const renumberings = sqliteTable(
  'renumberings',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    fromNodeNum: integer('from_node_num').notNull(),
    toNodeNum: integer('to_node_num').notNull(),
    /** When the new number was first heard. Later data belongs to it. */
    since: integer('since').notNull(),
    followedAt: integer('followed_at').notNull(),
    /** When the old number was heard again; null: never. */
    undoneAt: integer('undone_at'),
  },
  (t) => [index('renumberings_to').on(t.toNodeNum), index('renumberings_from').on(t.fromNodeNum)],
)

/**
 * Ids of deleted nodes, recorded by a trigger while rows of their history are left. An id is never reused, so no query
 * finds those rows.
 */
export const forgottenNodes = sqliteTable('forgotten_nodes', { nodeId: integer('node_id').primaryKey() })

/** Nodes that a user deleted and that have not been heard since; a trigger on `nodes` removes the others. */
export const deletedNodes = sqliteTable(
  'deleted_nodes',
  {
    nodeNum: integer('node_num').primaryKey(),
    deletedAt: integer('deleted_at').notNull(),
    /** It was hidden. Its messages stay hidden, and so will the node when it is heard again. */
    isHidden: flag('is_hidden').notNull().default(false),
  },
  (t) => [
    index('deleted_nodes_hidden')
      .on(t.nodeNum)
      .where(sql`is_hidden`),
  ],
)
