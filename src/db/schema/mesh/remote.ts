import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { REMOTE_ACTIONS, REMOTE_REASONS, REMOTE_STATES } from '../../../shared/mesh/remote-states.ts'

/** Nodes that somebody named as own, so that they may be administered over the mesh. */
export const remoteNodes = sqliteTable('remote_nodes', {
  nodeNum: integer('node_num').primaryKey(),
  /** Base64: its key when it was named, the only one that is trusted. Null: it is reached on the admin channel. */
  publicKey: text('public_key'),
  /** As it reported over the mesh; null: not asked yet. */
  firmwareVersion: text('firmware_version'),
  namedAt: integer('named_at').notNull(),
  /** Username at that time. */
  namedBy: text('named_by'),
})

/** Their settings as last read over the mesh, without keys, passwords and other secrets. */
export const remoteSections = sqliteTable(
  'remote_sections',
  {
    nodeNum: integer('node_num')
      .notNull()
      .references(() => remoteNodes.nodeNum, { onDelete: 'cascade' }),
    section: text('section').notNull(),
    /** JSON, by protobuf JSON names. */
    values: text('values').notNull(),
    /** JSON: which secrets are set. */
    secrets: text('secrets').notNull(),
    readAt: integer('read_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeNum, t.section] })],
)

/** What was done with them, and how it ended. */
export const remoteActions = sqliteTable(
  'remote_actions',
  {
    id: text('id').primaryKey(),
    nodeNum: integer('node_num')
      .notNull()
      .references(() => remoteNodes.nodeNum, { onDelete: 'cascade' }),
    kind: text('kind', { enum: REMOTE_ACTIONS }).notNull(),
    /** Null: a restart. */
    section: text('section'),
    state: text('state', { enum: REMOTE_STATES }).notNull(),
    /** JSON: paths of the requested fields, including secrets. */
    fields: text('fields').notNull(),
    /** JSON: the fields that the node did not apply. */
    differing: text('differing').notNull(),
    /** JSON: the requested fields as they were before, without secrets, nested as in a change. */
    before: text('before').notNull(),
    reason: text('reason', { enum: REMOTE_REASONS }),
    /** The error as the radio or the node named it. */
    detail: text('detail'),
    requestedAt: integer('requested_at').notNull(),
    /** Username at that time. */
    requestedBy: text('requested_by'),
    settledAt: integer('settled_at'),
  },
  (t) => [index('remote_actions_of_node').on(t.nodeNum, t.requestedAt)],
)
