import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** How many messages are stored for each hour (UTC), maintained by triggers. Hours without messages have no row. */
export const messageHours = sqliteTable('message_hours', {
  /** Start of the hour. */
  t: integer('t').primaryKey(),
  /** JSON: the number of messages by channel, and of all direct messages as `direct`. */
  counts: text('counts').notNull(),
})

/**
 * The first packet of each hour (UTC) in the log, maintained by a trigger. IDs are in the order of arrival, so the
 * difference of two counts the packets between them, and most packets cost no write. Replayed packets begin no hour.
 */
export const packetHours = sqliteTable('packet_hours', {
  /** Start of the hour. */
  t: integer('t').primaryKey(),
  firstId: integer('first_id').notNull(),
})
