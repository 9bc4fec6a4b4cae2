import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { users } from './accounts.ts'
import { flag } from '../flag.ts'
import { INVITATION_ENDS } from '../../../shared/access/invitation-ends.ts'

// What OpenID providers report about users.

/**
 * The accounts at providers that sign a user in; a proxy that names users counts as a provider. At most eight for each
 * user, and one at each issuer.
 */
export const identities = sqliteTable(
  'identities',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    issuer: text('issuer').notNull(),
    /** `sub` at the provider. */
    subject: text('subject').notNull(),
    /** When the user was linked to it. */
    createdAt: integer('created_at').notNull(),
  },
  (t) => [
    uniqueIndex('identities_subject').on(t.issuer, t.subject),
    uniqueIndex('identities_user').on(t.userId, t.issuer),
  ],
)

/** A single-use link by which somebody takes over a prepared account. */
export const invitations = sqliteTable('invitations', {
  userId: integer('user_id')
    .primaryKey()
    .references(() => users.id, { onDelete: 'cascade' }),
  /** SHA-256, hexadecimal. */
  tokenHash: text('token_hash').notNull().unique(),
  createdAt: integer('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  createdBy: integer('created_by').references(() => users.id),
  /** The address that it was sent to; null: the administrator hands it over. */
  email: text('email'),
  /** When it stopped working. The row stays, so that whoever opens the link learns why. */
  endedAt: integer('ended_at'),
  endedFor: text('ended_for', { enum: INVITATION_ENDS }),
})

/** The role and permissions that the groups at the provider gave a user at the latest sign-in. */
export const providerRoles = sqliteTable('provider_roles', {
  userId: integer('user_id')
    .primaryKey()
    .references(() => users.id, { onDelete: 'cascade' }),
  issuer: text('issuer').notNull(),
  /** Null: the groups do not decide it. */
  isAdmin: flag('is_admin'),
  /** JSON of the permissions; null: the groups do not decide them. */
  permissions: text('permissions'),
  appliedAt: integer('applied_at').notNull(),
})

/** The provider's ID of a session, to end it on both sides. Never in a backup. */
export const providerSessions = sqliteTable(
  'provider_sessions',
  {
    tokenHash: text('token_hash').primaryKey(),
    userId: integer('user_id').notNull(),
    issuer: text('issuer').notNull(),
    sid: text('sid'),
    /** The ID token, sealed under SESSION_SECRET: a hint for the provider's sign-out. */
    idToken: text('id_token'),
    createdAt: integer('created_at').notNull(),
  },
  (t) => [
    index('provider_sessions_sid').on(t.issuer, t.sid),
    index('provider_sessions_user').on(t.userId),
    index('provider_sessions_created').on(t.createdAt),
  ],
)

/**
 * What logout tokens ended recently. A sign-in that was in progress at that time must not survive it. Never in a
 * backup.
 */
export const providerLogouts = sqliteTable(
  'provider_logouts',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    issuer: text('issuer').notNull(),
    /** Null: all sessions of the user. */
    sid: text('sid'),
    /** Null: sessions of any user. */
    subject: text('subject'),
    createdAt: integer('created_at').notNull(),
    /** SHA-256 of the logout token, hexadecimal. */
    tokenHash: text('token_hash'),
    /** Everything that it names has ended. From then on the token is used up. */
    isDone: flag('is_done').notNull().default(false),
  },
  (t) => [index('provider_logouts_created').on(t.createdAt)],
)

/**
 * Sessions of a user that began at an issuer before this time have ended, whichever store has them. Never in a backup.
 */
export const providerCutoffs = sqliteTable(
  'provider_cutoffs',
  {
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    issuer: text('issuer').notNull(),
    endedAt: integer('ended_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.userId, t.issuer] })],
)

/** Claims that a provider has sent for at least one user. From then on a missing one has a meaning. */
export const providerClaims = sqliteTable(
  'provider_claims',
  {
    issuer: text('issuer').notNull(),
    /** As in OIDC_GROUPS_CLAIM. */
    path: text('path').notNull(),
    seenAt: integer('seen_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.issuer, t.path] })],
)
