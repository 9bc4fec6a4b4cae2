import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const settings = sqliteTable('settings', {
  key: text('key').primaryKey(),
  /** JSON */
  value: text('value').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/** Change counters kept by triggers. One look-up tells a polling client that nothing is new. */
export const revisions = sqliteTable('revisions', {
  name: text('name').primaryKey(),
  value: integer('value').notNull(),
  /** How many rows the table has, counted for the nodes alone; null: not counted. */
  rowCount: integer('row_count'),
})

/** How accurate the clock of this machine is, as far as known. */
export const clockMarks = sqliteTable('clock_marks', {
  name: text('name', { enum: ['confirmed', 'looked', 'agreed'] }).primaryKey(),
  t: integer('t').notNull(),
})
