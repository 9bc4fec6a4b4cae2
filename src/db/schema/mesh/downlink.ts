import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { COMMAND_KINDS } from '../../../shared/mesh/downlink.ts'
import { sources } from './sources.ts'

/** What radios of collectors were asked to send. */
export const radioCommands = sqliteTable(
  'radio_commands',
  {
    /** 32 random hexadecimal digits: no other service, and no earlier state of this one, ever used it. */
    id: text('id').primaryKey(),
    sourceId: integer('source_id')
      .notNull()
      .references(() => sources.id, { onDelete: 'cascade' }),
    kind: text('kind', { enum: COMMAND_KINDS }).notNull(),
    /** JSON, as the collector gets it. */
    content: text('content').notNull(),
    /** Username of whoever asked. */
    askedBy: text('asked_by').notNull(),
    /** The packet: its row has the delivery state. */
    fromNodeNum: integer('from_node_num').notNull(),
    packetId: integer('packet_id').notNull(),
    createdAt: integer('created_at').notNull(),
    /** It is sent only if a collector takes it from `createdAt` on and before this time. */
    expiresAt: integer('expires_at').notNull(),
    /** The random word of the collector that took it; null: nobody did. */
    claim: text('claim'),
    /** Nothing more is awaited: it was reported, refused, or has expired. */
    endedAt: integer('ended_at'),
  },
  (t) => [
    index('radio_commands_open')
      .on(t.sourceId, t.createdAt)
      .where(sql`ended_at is null`),
    index('radio_commands_packet').on(t.fromNodeNum, t.packetId),
  ],
)

/** Radios whose collector takes commands. */
export const radioListeners = sqliteTable('radio_listeners', {
  sourceId: integer('source_id')
    .primaryKey()
    .references(() => sources.id, { onDelete: 'cascade' }),
  /** JSON: what it takes, names of `DOWNLINK_KINDS`. */
  kinds: text('kinds').notNull(),
  /** When its collector last asked for commands. */
  listenedAt: integer('listened_at').notNull(),
})

/** Commands that this service took as a collector: each is sent at most once, whatever happens. Never in a backup. */
export const takenCommands = sqliteTable('taken_commands', {
  id: text('id').primaryKey(),
  /** The random word with which it was taken. */
  claim: text('claim').notNull(),
  takenAt: integer('taken_at').notNull(),
  fromNodeNum: integer('from_node_num').notNull(),
  packetId: integer('packet_id').notNull(),
  /** Why nothing was sent; null: it was, or may be. */
  refusal: text('refusal'),
  /** The delivery state that the other service knows. */
  told: text('told'),
})
