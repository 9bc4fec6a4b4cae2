import { sql } from 'drizzle-orm'
import { type AnySQLiteColumn, index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { AUTH_PROVIDERS } from '../../../shared/access/auth-providers.ts'

// The tables of accounts. Every timestamp is an integer: milliseconds since the Unix epoch.

export const users = sqliteTable(
  'users',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    username: text('username').notNull(),
    email: text('email'),
    displayName: text('display_name'),
    authProvider: text('auth_provider', { enum: AUTH_PROVIDERS }).notNull(),
    /**
     * The provider whose groups decide role and permissions of the account, and the only one whose user may take over a
     * prepared account. Null: no groups apply, and a user of any provider may take it over. Who may sign in is in
     * `identities`.
     */
    oidcIssuer: text('oidc_issuer'),
    passwordHash: text('password_hash'),
    mustChangePassword: flag('must_change_password').notNull().default(false),
    isAdmin: flag('is_admin').notNull().default(false),
    isActive: flag('is_active').notNull().default(true),
    /**
     * Sessions of another epoch are invalid, whichever store still contains them.
     * Decision: docs/decisions/short-decisions.md#sessions-carry-the-users-epoch
     */
    sessionEpoch: integer('session_epoch').notNull().default(0),
    createdAt: integer('created_at').notNull(),
    lastLoginAt: integer('last_login_at'),
    createdBy: integer('created_by').references((): AnySQLiteColumn => users.id),
    /** The channels whose contents the user may read and write, with numbers as in GET /api/channels; null: all. */
    channels: text('channels', { mode: 'json' }).$type<{ readonly read: number[]; readonly write: number[] }>(),
    directRead: flag('direct_read').notNull().default(false),
    directWrite: flag('direct_write').notNull().default(false),
    /** The language that the user chose; null: the one of the browser. */
    language: text('language'),
    /** The language of the browser that signed in last, for messages when none was chosen. */
    browserLanguage: text('browser_language'),
    /** The units in which the user reads measurements; null: metric. */
    units: text('units'),
    /** JSON: when no messages about alerts are wanted; null: always wanted. */
    quietHours: text('quiet_hours'),
  },
  (t) => [uniqueIndex('users_username').on(sql`lower(${t.username})`)],
)

export const userPermissions = sqliteTable(
  'user_permissions',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    resource: text('resource').notNull(),
    canRead: flag('can_read').notNull(),
    canWrite: flag('can_write').notNull(),
    /** When it was last changed. */
    grantedAt: integer('granted_at').notNull(),
    /** Null: the service itself, somebody on its command line, or unknown. */
    grantedBy: integer('granted_by').references(() => users.id),
  },
  (t) => [uniqueIndex('user_permissions_resource').on(t.userId, t.resource)],
)

export const apiTokens = sqliteTable(
  'api_tokens',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    name: text('name').notNull(),
    /** The first characters of the token, to recognise it. */
    prefix: text('prefix').notNull(),
    tokenHash: text('token_hash').notNull().unique(),
    scopes: text('scopes', { mode: 'json' }).$type<string[]>().notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at'),
    lastUsedAt: integer('last_used_at'),
    /** Since when it is refused until the owner signs in; null: it is not. */
    heldAt: integer('held_at'),
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
    /** When the user last proved who they are; null: when the session began. */
    authenticatedAt: integer('authenticated_at'),
    /** The number of factors used; null: unknown. */
    factors: integer('factors'),
    /** When the user last proved a second factor of this service; null: never in this session. */
    factorAt: integer('factor_at'),
  },
  (t) => [index('sessions_user').on(t.userId), index('sessions_expires').on(t.expiresAt)],
)

/** Counters of failed passwords and used sign-ins, each with the end of its window. Never in a backup. */
export const rateLimits = sqliteTable(
  'rate_limits',
  {
    key: text('key').primaryKey(),
    count: integer('count').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (t) => [index('rate_limits_expires').on(t.expiresAt)],
)

/**
 * Append-only: triggers refuse UPDATE, DELETE and REPLACE, except for setting the hash once and for trimmed entries. No
 * foreign keys, because entries outlive their subjects.
 */
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
    /** Hexadecimal SHA-256 of the previous entry's hash and this entry; null until it is sealed. */
    hash: text('hash'),
  },
  (t) => [
    index('audit_log_timestamp').on(t.timestamp),
    index('audit_log_user').on(t.userId, t.id),
    index('audit_log_action').on(t.action, t.id),
  ],
)

/**
 * How far the audit log is sealed and trimmed: one row, or none before the first seal. Triggers let both only increase.
 */
export const auditChain = sqliteTable('audit_chain', {
  id: integer('id').primaryKey(),
  /** Entries up to this id were trimmed; 0: none. */
  trimmedId: integer('trimmed_id').notNull(),
  /** The hash of the last trimmed entry. */
  trimmedHash: text('trimmed_hash').notNull(),
  sealedId: integer('sealed_id').notNull(),
  sealedHash: text('sealed_hash').notNull(),
})
