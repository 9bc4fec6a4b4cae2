import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Requests with an Idempotency-Key that created something, for a day. */
export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    userId: integer('user_id').notNull(),
    key: text('key').notNull(),
    /** Method and path. */
    route: text('route').notNull(),
    /** HMAC-SHA-256 of the body, hexadecimal. */
    requestHash: text('request_hash').notNull(),
    /** Identifies the created object for this route. The object may no longer exist. */
    createdId: integer('created_id').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.userId, t.key] }), index('idempotency_keys_created').on(t.createdAt)],
)
