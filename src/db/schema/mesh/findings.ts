import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag } from '../flag.ts'
import { FINDING_RULES } from '../../../shared/mesh/finding-rules.ts'

/** What is wrong in the mesh, as found by the latest look of each rule. */
export const findings = sqliteTable(
  'findings',
  {
    rule: text('rule', { enum: FINDING_RULES }).notNull(),
    /** What tells the findings of a rule apart: numbers of nodes, separated by dashes. */
    subject: text('subject').notNull(),
    /** When it was found first, without a look between that did not find it. */
    since: integer('since').notNull(),
    isLikely: flag('is_likely').notNull(),
    /** JSON: node numbers, first the one to visit. */
    nodes: text('nodes').notNull(),
    /** JSON: the channels on which the evidence arrived, as in GET /api/channels. */
    channels: text('channels').notNull(),
    /** JSON: figures, by the rule. */
    evidence: text('evidence').notNull(),
  },
  (t) => [primaryKey({ columns: [t.rule, t.subject] })],
)

/** When each rule looked last. */
export const findingLooks = sqliteTable('finding_looks', {
  rule: text('rule', { enum: FINDING_RULES }).primaryKey(),
  at: integer('at').notNull(),
})

/** Findings that somebody does not want to be told. */
export const findingMutes = sqliteTable(
  'finding_mutes',
  {
    rule: text('rule', { enum: FINDING_RULES }).notNull(),
    subject: text('subject').notNull(),
    mutedAt: integer('muted_at').notNull(),
    /** Username at that time. */
    mutedBy: text('muted_by'),
  },
  (t) => [primaryKey({ columns: [t.rule, t.subject] })],
)
