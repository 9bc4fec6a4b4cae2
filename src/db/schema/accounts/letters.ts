import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { LETTER_KINDS } from '../../../shared/access/letters.ts'
import { users } from './accounts.ts'

// E-mails about accounts, and the links in them.

/** Addresses that local users have proved to be theirs. */
export const verifiedEmails = sqliteTable(
  'verified_emails',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** Counts only while it is the address of the user. */
    email: text('email').notNull(),
    verifiedAt: integer('verified_at').notNull(),
    /** When the user got another address, or an administrator took the account back; null: not yet. */
    endedAt: integer('ended_at'),
  },
  (t) => [
    uniqueIndex('verified_emails_user')
      .on(t.userId)
      .where(sql`ended_at is null`),
    index('verified_emails_ended').on(t.userId, t.endedAt),
  ],
)

/** Single-use links in e-mails to local users. Never in a backup. */
export const mailLinks = sqliteTable(
  'mail_links',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    purpose: text('purpose', { enum: ['reset', 'verify'] }).notNull(),
    /** SHA-256, hexadecimal. */
    tokenHash: text('token_hash').notNull().unique(),
    /** The address that it was sent to. */
    email: text('email').notNull(),
    /** SHA-256 of the state of the account. If the state changes, the link is invalid. */
    state: text('state').notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (t) => [index('mail_links_user').on(t.userId), index('mail_links_expires').on(t.expiresAt)],
)

/** E-mails that wait to be sent, and those of the last days. Never in a backup. */
export const accountLetters = sqliteTable(
  'account_letters',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    /** ID for the receiver, the same at each attempt. */
    uid: text('uid').notNull().unique(),
    userId: integer('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    kind: text('kind', { enum: LETTER_KINDS }).notNull(),
    email: text('email').notNull(),
    /** JSON of its data. */
    details: text('details').notNull(),
    /** The token of its link, sealed under SESSION_SECRET until the letter has been sent. */
    sealed: text('sealed'),
    createdAt: integer('created_at').notNull(),
    /** Time of the next attempt. */
    dueAt: integer('due_at').notNull(),
    attempts: integer('attempts').notNull().default(0),
    /** When it was sent or given up; null: it is waiting. */
    endedAt: integer('ended_at'),
    /** The result, in a few words. */
    result: text('result'),
  },
  (t) => [
    index('account_letters_due')
      .on(t.dueAt)
      .where(sql`ended_at is null`),
    index('account_letters_user').on(t.userId, t.kind, t.createdAt),
    index('account_letters_created').on(t.createdAt),
  ],
)

/** Names entered by people who forgot their password, until they are looked up. Never in a backup. */
export const resetRequests = sqliteTable('reset_requests', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  /** A username or an e-mail address, known or unknown. */
  name: text('name').notNull(),
  /** The users who signed in before in the browser of the request. */
  knownTo: text('known_to', { mode: 'json' }).$type<number[]>().notNull(),
  ip: text('ip'),
  browser: text('browser'),
  requestId: text('request_id').notNull(),
  createdAt: integer('created_at').notNull(),
})
