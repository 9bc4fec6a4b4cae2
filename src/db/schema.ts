import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

export * from './account-tables.ts'
export * from './automation-tables.ts'
export * from './mesh-tables.ts'

// Every timestamp is an integer: milliseconds since the Unix epoch.

const flag = (name: string) => integer(name, { mode: 'boolean' })

/** Where packets come from: one row for each radio or broker the service has ever listened to. */
export const sources = sqliteTable('sources', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  kind: text('kind', { enum: ['tcp', 'mqtt', 'ingest', 'demo'] }).notNull(),
  name: text('name').notNull().unique(),
  localNodeNum: integer('local_node_num'),
  firmwareVersion: text('firmware_version'),
  createdAt: integer('created_at').notNull(),
})

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
    spoofSuspected: flag('spoof_suspected').notNull().default(false),
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
    /** dB and dBm of the node's own transmitter: only from packets heard directly. */
    snr: real('snr'),
    rssi: integer('rssi'),
    hopsAway: integer('hops_away'),
    lastHeard: integer('last_heard'),
    firstHeard: integer('first_heard').notNull(),
    viaMqtt: flag('via_mqtt').notNull().default(false),
    channel: integer('channel'),
    isFavorite: flag('is_favorite').notNull().default(false),
    isIgnored: flag('is_ignored').notNull().default(false),
    isLocal: flag('is_local').notNull().default(false),
    notes: text('notes').notNull().default(''),
  },
  (t) => [index('nodes_last_heard').on(t.lastHeard)],
)

/** WITHOUT ROWID in its migration. Rows of a node that is gone wait for their turn, as those of `telemetry` do. */
export const positions = sqliteTable(
  'positions',
  {
    nodeId: integer('node_id').notNull(),
    t: integer('t').notNull(),
    latitude: real('latitude').notNull(),
    longitude: real('longitude').notNull(),
    altitude: real('altitude'),
    precisionBits: integer('precision_bits'),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.t] })],
)

/** Metric names (`variant.metric`) as small integers, so that a telemetry row stays narrow. */
export const metrics = sqliteTable('metrics', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  name: text('name').notNull().unique(),
})

/** WITHOUT ROWID in its migration: rows of one chart lie side by side on disk. */
export const telemetry = sqliteTable(
  'telemetry',
  {
    nodeId: integer('node_id').notNull(),
    metric: integer('metric').notNull(),
    t: integer('t').notNull(),
    v: real('v').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.metric, t.t] })],
)

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
    direction: text('direction', { enum: ['in', 'out'] }).notNull(),
    deliveryState: text('delivery_state', {
      enum: ['queued', 'sent', 'relayed', 'delivered', 'failed', 'unknown'],
    }),
    routingError: text('routing_error'),
    /** Username of the sender, as it was then, or `automation:<name>`; null for received messages. */
    sentBy: text('sent_by'),
  },
  (t) => [
    uniqueIndex('messages_from_packet').on(t.fromNodeNum, t.packetId),
    index('messages_timestamp').on(t.timestamp),
    index('messages_channel').on(t.channel, t.id),
  ],
)

/** Never their keys. `index`: the slot of a radio, or the number of a broker's channel. */
export const channels = sqliteTable(
  'channels',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    index: integer('channel_index').notNull(),
    name: text('name').notNull(),
    role: text('role', { enum: ['DISABLED', 'PRIMARY', 'SECONDARY'] }).notNull(),
    /** As `identifyChannel` has it: the same for the same channel anywhere; null when it is off or not known. */
    identity: text('identity'),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.index] })],
)

/** Each way by which a message came: another radio of ours, or another gateway that published it. */
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
  },
  (t) => [primaryKey({ columns: [t.messageId, t.sourceId, t.gateway] })],
)

/** Requests to send that carried an Idempotency-Key, for a day. */
export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    userId: integer('user_id').notNull(),
    key: text('key').notNull(),
    /** SHA-256 of the request, hexadecimal. */
    requestHash: text('request_hash').notNull(),
    messageId: integer('message_id')
      .notNull()
      .references(() => messages.id, { onDelete: 'cascade' }),
    createdAt: integer('created_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.userId, t.key] }),
    index('idempotency_keys_created').on(t.createdAt),
    index('idempotency_keys_message').on(t.messageId),
  ],
)

/** Ways through the mesh: asked for by us, or answers to others that passed by. */
export const traceroutes = sqliteTable(
  'traceroutes',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    sourceId: integer('source_id').references(() => sources.id),
    /** Packet id of the question. */
    requestId: integer('request_id').notNull(),
    fromNodeNum: integer('from_node_num').notNull(),
    toNodeNum: integer('to_node_num').notNull(),
    timestamp: integer('timestamp').notNull(),
    answeredAt: integer('answered_at'),
    state: text('state', { enum: ['queued', 'sent', 'relayed', 'delivered', 'failed', 'unknown'] }).notNull(),
    routingError: text('routing_error'),
    /** JSON: node numbers and dB between the two ends, as `Route` has them; null until there is an answer. */
    route: text('route'),
    /** Username of who asked; null for those that passed by. */
    requestedBy: text('requested_by'),
  },
  (t) => [uniqueIndex('traceroutes_request').on(t.fromNodeNum, t.requestId)],
)

/** Who hears whom: the latest word of each node. */
export const neighbors = sqliteTable(
  'neighbors',
  {
    nodeNum: integer('node_num').notNull(),
    neighborNum: integer('neighbor_num').notNull(),
    snr: real('snr').notNull(),
    t: integer('t').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeNum, t.neighborNum] })],
)

export const waypoints = sqliteTable('waypoints', {
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
})

/** The latest packets: a ring, emptied from its old end. */
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
    /** JSON, decoded; without what might be a key or a password. */
    payload: text('payload').notNull(),
  },
  (t) => [
    index('packets_from').on(t.fromNodeNum, t.id),
    index('packets_port').on(t.port, t.id),
    index('packets_packet').on(t.fromNodeNum, t.packetId),
  ],
)

const rollUpColumns = () => ({
  nodeId: integer('node_id').notNull(),
  metric: integer('metric').notNull(),
  /** Begin of the hour or day, UTC. */
  t: integer('t').notNull(),
  n: integer('n').notNull(),
  min: real('min').notNull(),
  max: real('max').notNull(),
  sum: real('sum').notNull(),
  last: real('last').notNull(),
})

/** WITHOUT ROWID in their migration, as `telemetry`. */
export const telemetryHourly = sqliteTable('telemetry_hourly', rollUpColumns(), (t) => [
  primaryKey({ columns: [t.nodeId, t.metric, t.t] }),
])
export const telemetryDaily = sqliteTable('telemetry_daily', rollUpColumns(), (t) => [
  primaryKey({ columns: [t.nodeId, t.metric, t.t] }),
])

/** Hours with measurements that are not rolled up yet. WITHOUT ROWID in its migration. */
export const telemetryDirty = sqliteTable(
  'telemetry_dirty',
  {
    nodeId: integer('node_id').notNull(),
    metric: integer('metric').notNull(),
    /** Begin of the hour, UTC. */
    t: integer('t').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.metric, t.t] })],
)

/** What radios told of their settings at their latest handshake, without keys, passwords and other secrets. */
export const deviceConfig = sqliteTable(
  'device_config',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    section: text('section').notNull(),
    /** JSON, by protobuf JSON names. */
    values: text('values').notNull(),
    /** JSON: which secrets are set. */
    secrets: text('secrets').notNull(),
    readAt: integer('read_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.section] })],
)

/** The latest change of each section, and what became of it. */
export const deviceConfigChanges = sqliteTable(
  'device_config_changes',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    section: text('section').notNull(),
    id: text('id').notNull(),
    state: text('state', { enum: ['applying', 'applied', 'differs', 'failed', 'unknown'] }).notNull(),
    /** JSON: paths of the fields that were to change, secrets among them. */
    fields: text('fields').notNull(),
    /** JSON: those that the radio did not take over. */
    differing: text('differing').notNull(),
    reason: text('reason'),
    requestedAt: integer('requested_at').notNull(),
    /** Username, as it was then. */
    requestedBy: text('requested_by'),
    settledAt: integer('settled_at'),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.section] })],
)

export const settings = sqliteTable('settings', {
  key: text('key').primaryKey(),
  /** JSON */
  value: text('value').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/** Change counters kept by triggers: they tell a polling client, in one look-up, that nothing is new. */
export const revisions = sqliteTable('revisions', {
  name: text('name').primaryKey(),
  value: integer('value').notNull(),
})

/** Tables that a backup leaves out: a restored database starts with what its migrations put there. */
export const EPHEMERAL_TABLES = ['sessions', 'rate_limits', 'oidc_attempts', 'revisions', 'collector_outbox'] as const
