import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { sources } from './sources.ts'
import { CHANGE_STATES } from '../../../shared/mesh/change-states.ts'

/** Settings that radios reported in their latest handshake, without keys, passwords and other secrets. */
export const deviceConfig = sqliteTable(
  'device_config',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    section: text('section').notNull(),
    /** JSON, by protobuf JSON names. */
    values: text('values').notNull(),
    /** JSON: which secrets are set. */
    secrets: text('secrets').notNull(),
    readAt: integer('read_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.section] })],
)

/** The latest change of each section, and its outcome. */
export const deviceConfigChanges = sqliteTable(
  'device_config_changes',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    section: text('section').notNull(),
    id: text('id').notNull(),
    state: text('state', { enum: CHANGE_STATES }).notNull(),
    /** JSON: paths of the requested fields, including secrets. */
    fields: text('fields').notNull(),
    /** JSON: the fields that the radio did not apply. */
    differing: text('differing').notNull(),
    reason: text('reason'),
    /** The radio's notification during the change. */
    notice: text('notice'),
    requestedAt: integer('requested_at').notNull(),
    /** Username at that time. */
    requestedBy: text('requested_by'),
    settledAt: integer('settled_at'),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.section] })],
)
