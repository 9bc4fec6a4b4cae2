import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Packets that a collector has not delivered yet, oldest first. Never in a backup. */
export const collectorOutbox = sqliteTable('collector_outbox', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  source: text('source').notNull(),
  receivedAt: integer('received_at').notNull(),
  replayed: integer('replayed', { mode: 'boolean' }).notNull(),
  gateway: integer('gateway'),
  /** The identity of its channel, as in `channels`. */
  identity: text('identity'),
  /** A FromRadio without secrets, base64. */
  data: text('data').notNull(),
})
