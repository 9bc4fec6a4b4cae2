import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** The tables whose rows are kept for as long as a setting says. */
export const RETAINED_TABLES = ['telemetry', 'telemetry_hourly', 'packets', 'positions', 'messages'] as const

/** What the last look at the size of these tables found. Never in a backup: another disk has another size. */
export const retentionPlans = sqliteTable('retention_plans', {
  table: text('table_name', { enum: RETAINED_TABLES }).primaryKey(),
  /** Rows of known nodes. */
  rows: integer('rows').notNull(),
  /** How many of them an ordinary day adds. */
  rowsPerDay: integer('rows_per_day').notNull(),
  /** The size that the database can reach, from which the bounds follow; it sinks slowly. */
  limitBytes: integer('limit_bytes').notNull(),
  plannedAt: integer('planned_at').notNull(),
})
