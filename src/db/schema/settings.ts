import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const settings = sqliteTable('settings', {
  key: text('key').primaryKey(),
  /** JSON */
  value: text('value').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/** Change counters maintained by triggers. One look-up shows a polling client that nothing is new. */
export const revisions = sqliteTable('revisions', {
  name: text('name').primaryKey(),
  value: integer('value').notNull(),
  /** The number of rows of the table, counted only for nodes; null: not counted. */
  rowCount: integer('row_count'),
})

/** How accurate the clock of this machine is, as far as known. */
export const clockMarks = sqliteTable('clock_marks', {
  name: text('name', { enum: ['confirmed', 'looked', 'agreed'] }).primaryKey(),
  t: integer('t').notNull(),
})
