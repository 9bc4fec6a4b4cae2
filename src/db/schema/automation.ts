import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { OUTCOMES } from '../../shared/automation/rules.ts'

// The tables of automation. Every timestamp is an integer: milliseconds since the Unix epoch.

export const automations = sqliteTable(
  'automations',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    enabled: integer('enabled', { mode: 'boolean' }).notNull(),
    /** JSON: the whole rule. */
    rule: text('rule').notNull(),
    /** Incremented by every change: runs of an earlier version of the rule are dropped. */
    revision: integer('revision').notNull(),
    /** Runs that were due before this time are finished: done, skipped, or from before the rule was switched on. */
    anchorAt: integer('anchor_at').notNull(),
    /** When the latest run that was not skipped began. */
    lastFiredAt: integer('last_fired_at'),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    /** Username at that time. */
    updatedBy: text('updated_by'),
  },
  (t) => [uniqueIndex('automations_name').on(sql`lower(${t.name})`)],
)

/** What rules did or skipped. No foreign key, because deleting a rule must not reset its count of answers. */
export const automationRuns = sqliteTable(
  'automation_runs',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    automationId: integer('automation_id').notNull(),
    /** Unique for one rule: the time when it was due, the packet that was answered, or a reason and its hour. */
    key: text('key').notNull(),
    t: integer('t').notNull(),
    /** The latest of `count` equal skips within an hour, which share this row. */
    lastT: integer('last_t').notNull(),
    count: integer('count').notNull().default(1),
    outcome: text('outcome', { enum: OUTCOMES }).notNull(),
    reason: text('reason'),
    /** The recipient of the answer; null for a scheduled run. */
    triggeredBy: integer('triggered_by'),
    /** The text that is sent; null for a traceroute. */
    text: text('text'),
    /** JSON: the packets that were queued. */
    packets: text('packets').notNull().default('[]'),
  },
  (t) => [
    uniqueIndex('automation_runs_key').on(t.automationId, t.key),
    index('automation_runs_automation').on(t.automationId),
    index('automation_runs_last').on(t.automationId, t.lastT),
    index('automation_runs_t').on(t.lastT),
  ],
)
