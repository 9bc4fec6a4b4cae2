import { sql } from 'drizzle-orm'
import { type AnySQLiteColumn, index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { flag } from './flag.ts'
import { AUTH_PROVIDERS } from '../../shared/access/auth-providers.ts'

// The tables of accounts, as a part of schema.ts. Every timestamp is an integer: milliseconds since the Unix epoch.

export const users = sqliteTable(
  'users',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    username: text('username').notNull(),
    email: text('email'),
    displayName: text('display_name'),
    authProvider: text('auth_provider', { enum: AUTH_PROVIDERS }).notNull(),
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
    /** Of which channels it may read and write the contents, as GET /api/channels numbers them; null: of all. */
    channels: text('channels', { mode: 'json' }).$type<{ readonly read: number[]; readonly write: number[] }>(),
    directRead: flag('direct_read').notNull().default(false),
    directWrite: flag('direct_write').notNull().default(false),
  },
  (t) => [
    uniqueIndex('users_username').on(sql`lower(${t.username})`),
    uniqueIndex('users_oidc').on(t.oidcIssuer, t.oidcSubject),
  ],
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
    /** Null: the service itself, somebody at its console, or not known. */
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
    /** When the user last proved who they are; null: when the session began. */
    authenticatedAt: integer('authenticated_at'),
    /** How many factors that took; null: not known. */
    factors: integer('factors'),
  },
  (t) => [index('sessions_user').on(t.userId), index('sessions_expires').on(t.expiresAt)],
)

/** Attempts at passwords, and sign-ins that were used up, in their windows. Never in a backup. */
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
 * Append-only: triggers refuse UPDATE, DELETE and REPLACE, but for a hash that was null, and for entries that were
 * trimmed. No foreign keys, since entries outlive their subjects.
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
    /** Hexadecimal SHA-256 of the hash of the entry before and of this entry; null until it is sealed. */
    hash: text('hash'),
  },
  (t) => [
    index('audit_log_timestamp').on(t.timestamp),
    index('audit_log_user').on(t.userId, t.id),
    index('audit_log_action').on(t.action, t.id),
  ],
)

/** How far the audit log is sealed and trimmed: one row, or none while nothing is. Triggers let both only grow. */
export const auditChain = sqliteTable('audit_chain', {
  id: integer('id').primaryKey(),
  /** Up to this id entries were trimmed; 0: none. */
  trimmedId: integer('trimmed_id').notNull(),
  /** The hash of the last entry that was trimmed. */
  trimmedHash: text('trimmed_hash').notNull(),
  sealedId: integer('sealed_id').notNull(),
  sealedHash: text('sealed_hash').notNull(),
})
