import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** How many messages are stored of each hour (UTC), kept by triggers. Hours without any have no row. */
export const messageHours = sqliteTable('message_hours', {
  /** Start of the hour. */
  t: integer('t').primaryKey(),
  /** JSON: the number of messages by channel, and of all direct ones as `direct`. */
  counts: text('counts').notNull(),
})

/**
 * With which packet each hour (UTC) of the log began, kept by a trigger: IDs are in the order of arrival, so their
 * difference counts packets, and a packet costs no write. Replayed ones begin no hour.
 */
export const packetHours = sqliteTable('packet_hours', {
  /** Start of the hour. */
  t: integer('t').primaryKey(),
  firstId: integer('first_id').notNull(),
})
