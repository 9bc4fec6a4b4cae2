import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What a collector has heard and not delivered yet, oldest first. Never in a backup. */
export const collectorOutbox = sqliteTable('collector_outbox', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  source: text('source').notNull(),
  receivedAt: integer('received_at').notNull(),
  replayed: integer('replayed', { mode: 'boolean' }).notNull(),
  gateway: integer('gateway'),
  /** Of a channel, as in `channels`. */
  identity: text('identity'),
  /** A FromRadio without secrets, base64. */
  data: text('data').notNull(),
})

/** Nodes that go on under another number: their history went along. */
export const renumberings = sqliteTable(
  'renumberings',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    fromNodeNum: integer('from_node_num').notNull(),
    toNodeNum: integer('to_node_num').notNull(),
    /** When the new number was first heard: what is later is its own. */
    since: integer('since').notNull(),
    followedAt: integer('followed_at').notNull(),
    /** When the old number was heard again; null: it was not. */
    undoneAt: integer('undone_at'),
  },
  (t) => [index('renumberings_to').on(t.toNodeNum), index('renumberings_from').on(t.fromNodeNum)],
)

/**
 * Ids of nodes that are gone, by a trigger, while rows of their history are left. An id is never given again, so that
 * nobody finds those rows.
 */
export const forgottenNodes = sqliteTable('forgotten_nodes', { nodeId: integer('node_id').primaryKey() })
