import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { apiTokens } from '../accounts/accounts.ts'
import { SOURCE_KINDS } from '../../../shared/mesh/link-kinds.ts'

/** Where packets come from: one row for each radio or broker the service has ever listened to. */
export const sources = sqliteTable('sources', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  kind: text('kind', { enum: SOURCE_KINDS }).notNull(),
  name: text('name').notNull().unique(),
  localNodeNum: integer('local_node_num'),
  firmwareVersion: text('firmware_version'),
  createdAt: integer('created_at').notNull(),
  /**
   * For a collector's source: the token that delivers it. Null: the token was deleted, together with the source's
   * claims.
   */
  tokenId: integer('token_id').references(() => apiTokens.id, { onDelete: 'set null' }),
})

/** How many unknown node numbers each source reported first, within the limit and beyond it. */
export const newcomers = sqliteTable('newcomers', {
  sourceId: integer('source_id')
    .primaryKey()
    .references(() => sources.id, { onDelete: 'cascade' }),
  /** The latest hour with any, in hours since the epoch. */
  hour: integer('hour').notNull(),
  /** Unknown node numbers of that hour. */
  asked: integer('asked').notNull(),
  /** Refused beyond the limit, over all hours. */
  refused: integer('refused').notNull(),
})
