import { sql } from 'drizzle-orm'
import {
  type AnySQLiteColumn,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'

// Every timestamp is an integer: milliseconds since the Unix epoch.

const flag = (name: string) => integer(name, { mode: 'boolean' })

// --- the mesh -------------------------------------------------------------------------------------------------

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

export const positions = sqliteTable(
  'positions',
  {
    nodeId: integer('node_id')
      .notNull()
      .references(() => nodes.id, { onDelete: 'cascade' }),
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
    /** Username of the sender, as it was then; null for received messages. */
    sentBy: text('sent_by'),
  },
  (t) => [
    uniqueIndex('messages_from_packet').on(t.fromNodeNum, t.packetId),
    index('messages_timestamp').on(t.timestamp),
    index('messages_channel').on(t.channel, t.id),
  ],
)

/** Names and roles only; channel keys are never stored. */
export const channels = sqliteTable(
  'channels',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    index: integer('channel_index').notNull(),
    name: text('name').notNull(),
    role: text('role', { enum: ['DISABLED', 'PRIMARY', 'SECONDARY'] }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.index] })],
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

// --- accounts -------------------------------------------------------------------------------------------------

export const users = sqliteTable(
  'users',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    username: text('username').notNull(),
    email: text('email'),
    displayName: text('display_name'),
    authProvider: text('auth_provider', { enum: ['local', 'oidc'] }).notNull(),
    oidcIssuer: text('oidc_issuer'),
    oidcSubject: text('oidc_subject'),
    passwordHash: text('password_hash'),
    mustChangePassword: flag('must_change_password').notNull().default(false),
    isAdmin: flag('is_admin').notNull().default(false),
    isActive: flag('is_active').notNull().default(true),
    /** Sessions of another epoch are dead, whichever store still holds them. */
    sessionEpoch: integer('session_epoch').notNull().default(0),
    createdAt: integer('created_at').notNull(),
    lastLoginAt: integer('last_login_at'),
    createdBy: integer('created_by').references((): AnySQLiteColumn => users.id),
  },
  (t) => [
    uniqueIndex('users_username').on(sql`lower(${t.username})`),
    uniqueIndex('users_oidc').on(t.oidcIssuer, t.oidcSubject),
  ],
)

export const userPermissions = sqliteTable(
  'user_permissions',
  {
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    resource: text('resource').notNull(),
    canRead: flag('can_read').notNull(),
    canWrite: flag('can_write').notNull(),
  },
  (t) => [primaryKey({ columns: [t.userId, t.resource] })],
)

export const apiTokens = sqliteTable(
  'api_tokens',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    name: text('name').notNull(),
    /** The first characters of the token, to recognise it by. */
    prefix: text('prefix').notNull(),
    tokenHash: text('token_hash').notNull().unique(),
    scopes: text('scopes', { mode: 'json' }).$type<string[]>().notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at'),
    lastUsedAt: integer('last_used_at'),
  },
  (t) => [index('api_tokens_user').on(t.userId)],
)

/** Never in a backup. */
export const sessions = sqliteTable(
  'sessions',
  {
    id: integer('id').primaryKey(),
    tokenHash: text('token_hash').notNull().unique(),
    userId: integer('user_id').notNull(),
    epoch: integer('epoch').notNull(),
    createdAt: integer('created_at').notNull(),
    lastSeenAt: integer('last_seen_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    ip: text('ip'),
    userAgent: text('user_agent'),
    oidcIssuer: text('oidc_issuer'),
  },
  (t) => [index('sessions_user').on(t.userId), index('sessions_expires').on(t.expiresAt)],
)

/** Login attempts in the current window. Never in a backup. */
export const rateLimits = sqliteTable(
  'rate_limits',
  {
    key: text('key').primaryKey(),
    count: integer('count').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (t) => [index('rate_limits_expires').on(t.expiresAt)],
)

/** Sign-ins under way at the OpenID provider; nothing here is of use to whoever reads it. Never in a backup. */
export const oidcAttempts = sqliteTable(
  'oidc_attempts',
  {
    /** SHA-256 of the attempt's state, hexadecimal. */
    stateHash: text('state_hash').primaryKey(),
    issuer: text('issuer').notNull(),
    returnTo: text('return_to').notNull(),
    /** Client address, an IPv6 one as its /64. */
    address: text('address').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (t) => [index('oidc_attempts_expires').on(t.expiresAt), index('oidc_attempts_address').on(t.address)],
)

/** Append-only: triggers refuse UPDATE and DELETE. No foreign keys, since entries outlive their subjects. */
export const auditLog = sqliteTable(
  'audit_log',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    timestamp: integer('timestamp').notNull(),
    userId: integer('user_id'),
    username: text('username'),
    action: text('action').notNull(),
    resource: text('resource').notNull(),
    /** JSON */
    details: text('details').notNull(),
    ip: text('ip'),
    requestId: text('request_id'),
  },
  (t) => [
    index('audit_log_timestamp').on(t.timestamp),
    index('audit_log_user').on(t.userId, t.id),
    index('audit_log_action').on(t.action, t.id),
  ],
)

/** Tables that a backup leaves out: a restored database starts with what its migrations put there. */
export const EPHEMERAL_TABLES = ['sessions', 'rate_limits', 'oidc_attempts', 'revisions'] as const
