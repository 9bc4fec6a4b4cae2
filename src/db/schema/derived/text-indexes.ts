import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * How far each full-text index is built, newest rows first. It contains rows from this id on, and triggers keep it up
 * to date. The indexes themselves are virtual tables: `<table>_text`, or those of `textParts`. Never in a backup.
 */
export const textIndexes = sqliteTable('text_indexes', {
  table: text('table_name').primaryKey(),
  indexedFrom: integer('indexed_from').notNull(),
})

/**
 * The virtual tables that share the index of messages, about one for each month: `name` has those below `before` and
 * from the `before` of the next older part on. The newest part has the largest number as `before`.
 */
export const textParts = sqliteTable('text_parts', {
  name: text().primaryKey(),
  before: integer().notNull(),
  /** The years since the birth of Christ times twelve, and the month from 0; 0: before there were parts. */
  month: integer().notNull(),
})
