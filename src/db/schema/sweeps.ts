import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Tables that are worked through from end to end, which may take several runs. */
export const SWEEP_NAMES = [
  'telemetry',
  'telemetry_hourly',
  'positions',
  'proven_packets',
  'summaries',
  'counts',
  'counts_of_messages',
  'counts_of_receptions',
  'counts_of_positions',
  'counts_of_proven_packets',
] as const

/** Where the next run goes on with each of them. */
export const sweeps = sqliteTable('sweeps', {
  name: text('name', { enum: SWEEP_NAMES }).primaryKey(),
  /** The key up to which the pass under way has come, as JSON; null: no pass is under way. */
  place: text('place'),
  /** The cutoff of the latest pass, finished or not: it deletes what is older. */
  cutoff: integer('cutoff').notNull(),
  /** Nothing older is left: the cutoff of the last finished pass. Before the first one: where that pass began. */
  doneBefore: integer('done_before').notNull(),
})
