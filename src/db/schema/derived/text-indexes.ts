import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * How far each full-text index is built, newest rows first. It contains rows from this id on, and triggers keep it up
 * to date. The indexes themselves are virtual tables, created by the migration: `<table>_text`. Never in a backup.
 */
export const textIndexes = sqliteTable('text_indexes', {
  table: text('table_name').primaryKey(),
  indexedFrom: integer('indexed_from').notNull(),
})
