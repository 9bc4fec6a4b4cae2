import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'

/** Shapes that somebody put on the map, such as the borders of a district. */
export const overlays = sqliteTable('overlays', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  name: text('name').notNull(),
  /** Anonymous visitors see it while public access shows them nodes. */
  isPublic: flag('is_public').notNull(),
  /** All of its parts have arrived. Until then nobody sees it. */
  isWhole: flag('is_whole').notNull(),
  createdAt: integer('created_at').notNull(),
  /** Username at that time. */
  createdBy: text('created_by').notNull(),
  shapes: integer('shapes').notNull(),
  bytes: integer('bytes').notNull(),
})

/** Its shapes, in slices that are small enough for one statement. */
export const overlayParts = sqliteTable(
  'overlay_parts',
  {
    overlayId: integer('overlay_id').notNull(),
    part: integer('part').notNull(),
    /** GeoJSON features, one a line, with commas between them. */
    features: text('features').notNull(),
  },
  (t) => [primaryKey({ columns: [t.overlayId, t.part] })],
)
