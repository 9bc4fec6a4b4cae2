import { integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'

/** Metric names (`variant.metric`) as small integers, so that a telemetry row stays narrow. */
export const metrics = sqliteTable('metrics', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  name: text('name').notNull().unique(),
})

/** WITHOUT ROWID in its migration: rows of one chart lie side by side on disk. */
export const telemetry = sqliteTable(
  'telemetry',
  {
    nodeId: integer('node_id').notNull(),
    metric: integer('metric').notNull(),
    t: integer('t').notNull(),
    v: real('v').notNull(),
    /** Its channel, numbered as in GET /api/channels; see `UNKNOWN_CHANNEL`. */
    channel: integer('channel').default(UNKNOWN_CHANNEL),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.metric, t.t] })],
)

const rollUpColumns = () => ({
  nodeId: integer('node_id').notNull(),
  metric: integer('metric').notNull(),
  /** Start of the hour or day, UTC. */
  t: integer('t').notNull(),
  n: integer('n').notNull(),
  min: real('min').notNull(),
  max: real('max').notNull(),
  sum: real('sum').notNull(),
  last: real('last').notNull(),
  /** The channel of all summarised measurements; see `UNKNOWN_CHANNEL`. */
  channel: integer('channel').default(UNKNOWN_CHANNEL),
})

/** WITHOUT ROWID in their migration, like `telemetry`. */
export const telemetryHourly = sqliteTable('telemetry_hourly', rollUpColumns(), (t) => [
  primaryKey({ columns: [t.nodeId, t.metric, t.t] }),
])
export const telemetryDaily = sqliteTable('telemetry_daily', rollUpColumns(), (t) => [
  primaryKey({ columns: [t.nodeId, t.metric, t.t] }),
])

/** Hours with measurements that are not summarised yet, also of `telemetryRuns`. WITHOUT ROWID in its migration. */
export const telemetryDirty = sqliteTable(
  'telemetry_dirty',
  {
    nodeId: integer('node_id').notNull(),
    /** 0: all of a packed hour. */
    metric: integer('metric').notNull(),
    /** Start of the hour, UTC. */
    t: integer('t').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.metric, t.t] })],
)

const runKey = () => ({
  nodeId: integer('node_id').notNull(),
  /** Start of what the row covers, UTC. */
  t: integer('t').notNull(),
})

/** Measurements of a node in an hour as one row, where written rows cost. WITHOUT ROWID in their migration. */
export const telemetryRuns = sqliteTable(
  'telemetry_runs',
  {
    ...runKey(),
    /** JSON; see `src/db/runs.ts`. */
    body: text('body').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.t] })],
)
/** The hours of a node's day as one row. */
export const telemetryHourlyRuns = sqliteTable(
  'telemetry_hourly_runs',
  {
    ...runKey(),
    /** JSON; see `src/db/runs.ts`. */
    body: text('body').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.t] })],
)
/** The days of a node in 30 days as one row. */
export const telemetryDailyRuns = sqliteTable(
  'telemetry_daily_runs',
  {
    ...runKey(),
    /** JSON; see `src/db/runs.ts`. */
    body: text('body').notNull(),
  },
  (t) => [primaryKey({ columns: [t.nodeId, t.t] })],
)

/**
 * Up to which hour or day, and there up to which node, packed rows are summarised. WITHOUT ROWID in its migration.
 */
export const telemetryPlaces = sqliteTable('telemetry_places', {
  name: text('name', { enum: ['hours', 'days'] }).primaryKey(),
  t: integer('t').notNull(),
  nodeId: integer('node_id').notNull(),
})
