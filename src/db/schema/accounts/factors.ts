import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { users } from './accounts.ts'
import { flag } from '../flag.ts'

// Second factors of users.

/** One authenticator app for each user. */
export const totpFactors = sqliteTable('totp_factors', {
  userId: integer('user_id')
    .primaryKey()
    .references(() => users.id, { onDelete: 'cascade' }),
  /** Sealed under SESSION_SECRET. */
  seed: text('seed').notNull(),
  /** The latest time step whose code was accepted. No code works twice (RFC 6238, 5.2). */
  lastStep: integer('last_step').notNull(),
  /** Random value of the use that set `lastStep`. It shows which of two simultaneous uses won. */
  lastUse: text('last_use'),
  createdAt: integer('created_at').notNull(),
  lastUsedAt: integer('last_used_at'),
})

export const recoveryCodes = sqliteTable(
  'recovery_codes',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** SHA-256, hexadecimal. */
    codeHash: text('code_hash').notNull(),
    /** Null while the code is unused, then a random value of the use that took it. */
    usedBy: text('used_by'),
  },
  (t) => [uniqueIndex('recovery_codes_code').on(t.userId, t.codeHash)],
)

export const passkeys = sqliteTable(
  'passkeys',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** The owner's name for it. */
    name: text('name').notNull(),
    /** Base64url. */
    credentialId: text('credential_id').notNull().unique(),
    /** COSE, base64url. */
    publicKey: text('public_key').notNull(),
    counter: integer('counter').notNull(),
    /** Whether it can be copied to other devices, and whether it was. */
    isBackupEligible: flag('is_backup_eligible').notNull(),
    isBackedUp: flag('is_backed_up').notNull(),
    transports: text('transports', { mode: 'json' }).$type<string[]>().notNull(),
    /** The domain that it belongs to. */
    rpId: text('rp_id').notNull(),
    /** Random value of the latest use. It shows which of two simultaneous uses won. */
    lastUse: text('last_use'),
    createdAt: integer('created_at').notNull(),
    lastUsedAt: integer('last_used_at'),
  },
  (t) => [index('passkeys_user').on(t.userId)],
)

/** The user handle in a user's passkeys. It reveals nothing about the user, so it is neither an ID nor a name. */
export const passkeyHandles = sqliteTable('passkey_handles', {
  userId: integer('user_id')
    .primaryKey()
    .references(() => users.id, { onDelete: 'cascade' }),
  /** Random, base64url. */
  handle: text('handle').notNull().unique(),
})

/** Users whose second factors an administrator removed, until they confirm the notice. */
export const factorResets = sqliteTable('factor_resets', {
  userId: integer('user_id')
    .primaryKey()
    .references(() => users.id, { onDelete: 'cascade' }),
  resetAt: integer('reset_at').notNull(),
})
