import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { type LinkKind } from '../../../shared/mesh/link-kinds.ts'
import { flag } from '../flag.ts'

/** The radios and brokers that this service connects to. */
export const connections = sqliteTable('connections', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  /** Also the name of its source. It never changes, because the history belongs to the source. */
  name: text('name').notNull().unique(),
  kind: text('kind').$type<LinkKind>().notNull(),
  enabled: flag('enabled').notNull(),
  /** Its place in lists, from 0. Of several radios that can send, the first one does. */
  position: integer('position').notNull(),
  /** Its address and secrets, sealed under SESSION_SECRET; null: they are in the environment. */
  sealed: text('sealed'),
  /** JSON of the options of its virtual node; null: it has none. */
  virtualNode: text('virtual_node'),
  /** When a restore brought it back: until an administrator releases it, nothing is opened. Null: it is not held. */
  heldAt: integer('held_at'),
  /** A higher number than of any connection before, at each change. */
  revision: integer('revision').notNull(),
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
})
