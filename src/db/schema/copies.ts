import { integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import type { CopyState, PlaceKind } from '../../shared/copies.ts'
import { flag } from './flag.ts'

/** Places to which encrypted archives of backups are copied. */
export const copyPlaces = sqliteTable('copy_places', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  name: text('name').notNull().unique(),
  kind: text('kind').$type<PlaceKind>().notNull(),
  enabled: flag('enabled').notNull(),
  /** Its address and credentials, sealed under SESSION_SECRET. */
  sealed: text('sealed').notNull(),
  /** When a restore brought it back: until an administrator releases it, nothing is sent. Null: it is not held. */
  heldAt: integer('held_at'),
  /** Attempts that failed in a row. */
  failures: integer('failures').notNull().default(0),
  /** When the first of them failed. */
  failingSince: integer('failing_since'),
  /** Why the latest one failed, or what could not be done after a copy; one sentence in English. */
  problem: text('problem'),
  /** No attempt before this time. */
  nextTryAt: integer('next_try_at').notNull().default(0),
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/** Copies of backups at these places. */
export const backupCopies = sqliteTable(
  'backup_copies',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    placeId: integer('place_id')
      .notNull()
      .references(() => copyPlaces.id, { onDelete: 'cascade' }),
    /** The name of the backup. */
    name: text('name').notNull(),
    kind: text('kind').$type<'manual' | 'scheduled'>().notNull(),
    /** When the backup was made. */
    createdAt: integer('created_at').notNull(),
    state: text('state').$type<CopyState>().notNull(),
    /** Of the encrypted archive. */
    sizeBytes: integer('size_bytes'),
    sha256: text('sha256'),
    /** When the copy was complete and checked. */
    madeAt: integer('made_at'),
    /** JSON of an upload in parts that an interrupted attempt left; null: there is none. */
    upload: text('upload'),
  },
  (table) => [uniqueIndex('backup_copies_place_name').on(table.placeId, table.name)],
)
