import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What the service remembers about itself and its machine. */
export const STATE_NAMES = ['storage', 'release', 'runs', 'import'] as const

/** One row for each name, each of bounded size. Not in backups, because it is about this machine. */
export const serviceState = sqliteTable('service_state', {
  name: text('name', { enum: STATE_NAMES }).primaryKey(),
  /** What is remembered, as JSON. */
  value: text('value').notNull(),
  updatedAt: integer('updated_at').notNull(),
})
