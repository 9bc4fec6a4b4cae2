import { integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { apiTokens } from '../accounts/accounts.ts'
import { SOURCE_KINDS } from '../../../shared/mesh/link-kinds.ts'

/** Where packets come from: one row for each radio or broker the service has ever listened to. */
export const sources = sqliteTable('sources', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  kind: text('kind', { enum: SOURCE_KINDS }).notNull(),
  name: text('name').notNull().unique(),
  localNodeNum: integer('local_node_num'),
  /** The node that a collector's source called its radio, until one of our own radios heard it as another node. */
  disputedNodeNum: integer('disputed_node_num'),
  firmwareVersion: text('firmware_version'),
  createdAt: integer('created_at').notNull(),
  /**
   * For a collector's source: the token that delivers it. Null: the token was deleted, together with the source's
   * claims.
   */
  tokenId: integer('token_id').references(() => apiTokens.id, { onDelete: 'set null' }),
})

/** Whether somebody said that a node is one of our own radios. What a collector claims counts only as far. */
export const ownRadioDecisions = sqliteTable('own_radio_decisions', {
  nodeNum: integer('node_num').primaryKey(),
  isOwn: flag('is_own').notNull(),
  decidedAt: integer('decided_at').notNull(),
  /** Whose collector is believed about it: the user whose tokens deliver the claim. Null: nobody's. */
  ownerId: integer('owner_id'),
})

/** How many unknown node numbers each source reported first, within the limit and beyond it. */
export const newcomers = sqliteTable('newcomers', {
  sourceId: integer('source_id')
    .primaryKey()
    .references(() => sources.id, { onDelete: 'cascade' }),
  /** The latest hour with unknown numbers, in hours since the epoch. */
  hour: integer('hour').notNull(),
  /** Unknown node numbers of that hour. */
  asked: integer('asked').notNull(),
  /** The number refused beyond the limit, over all hours. */
  refused: integer('refused').notNull(),
  /** Those of that hour that counted against the part of the limit that is reserved for no gateway. */
  opened: integer('opened').notNull().default(0),
})

/**
 * Gateways that a broker names, with how long each is known and how many new nodes it brought. Their number is limited
 * for each source.
 */
export const gateways = sqliteTable(
  'gateways',
  {
    /** Earlier rows are kept first. */
    id: integer('id').primaryKey({ autoIncrement: true }),
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    /** Node number. */
    gateway: integer('gateway').notNull(),
    /** Distinct days, UTC, by the clock of this service, on which it delivered packets. */
    days: integer('days').notNull(),
    /** The latest of these days, in days since the epoch. */
    lastDay: integer('last_day').notNull(),
    /** The latest hour in which it brought new nodes within its own share, and their number. */
    hour: integer('hour').notNull(),
    taken: integer('taken').notNull(),
  },
  (t) => [uniqueIndex('gateways_of_source').on(t.sourceId, t.gateway)],
)
