import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { sources } from './sources.ts'
import { CHANNEL_ROLES } from '../../../shared/mesh/channels.ts'

/** Channels without their keys. `index`: the channel index of a radio, or the number of a broker's channel. */
export const channels = sqliteTable(
  'channels',
  {
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    index: integer('channel_index').notNull(),
    name: text('name').notNull(),
    role: text('role', { enum: CHANNEL_ROLES }).notNull(),
    /** From `identifyChannel`, the same for one channel everywhere; null if the channel is off or unknown. */
    identity: text('identity'),
    /** For a channel without a radio's channel index: first and last time it was heard. */
    firstHeard: integer('first_heard'),
    lastHeard: integer('last_heard'),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.index] })],
)
