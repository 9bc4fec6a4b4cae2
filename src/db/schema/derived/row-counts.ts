import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * The number of rows of a table by owner, maintained by triggers. WITHOUT ROWID in its migration. `owner` is the node
 * number of the sender, or the id of the node in tables that refer to it.
 */
export const rowCounts = sqliteTable(
  'row_counts',
  {
    table: text('table_name').notNull(),
    owner: integer('owner').notNull(),
    n: integer('n').notNull(),
  },
  (t) => [primaryKey({ columns: [t.table, t.owner] })],
)
