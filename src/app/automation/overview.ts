import * as z from 'zod'
import type { Ctx } from '../base/context.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { listAutomations, MAX_AUTOMATIONS } from './automations.ts'
import { isTimeZone } from '../config/time-zone.ts'
import { type Facts, listFacts } from './facts.ts'
import { blockEverywhere, MAX_ANSWERS_PER_HOUR } from './guards.ts'
import { ruleSchema } from './rules.ts'
import { type LastRun, lastRunSchema, readAnswers, readLastRuns, reasonSchema } from './runs.ts'
import { nextRunAt } from './slots.ts'
import type { Automation } from './stored-rule.ts'
import { timeField } from '../http/fields.ts'
import { revisionField, shownRevision } from '../http/preconditions.ts'

const version = z.object({
  revision: revisionField,
  createdAt: timeField,
  updatedAt: timeField,
  updatedBy: z.string().nullable(),
})

export const automationSchema = z
  .object({
    id: z.int(),
    rule: ruleSchema,
    state: z.enum(['off', 'ready', 'blocked']).describe('blocked: it is on, and nothing could be sent right now'),
    blockedBy: reasonSchema.nullable().describe('Why it is blocked'),
    runs: z.boolean().describe('false: this runtime has no radios, so the rule never runs, on or off'),
    nextRunAt: timeField.nullable().describe('Outside quiet hours; null: the rule is off, or it answers messages'),
    lastRun: lastRunSchema.nullable(),
    ...version.shape,
  })
  .meta({ id: 'Automation', description: 'A rule and its state' })
type ShownAutomation = z.infer<typeof automationSchema>

export const automationListSchema = z.object({
  automations: z.array(automationSchema),
  unreadable: z
    .array(z.object({ id: z.int(), name: z.string(), kind: z.string(), ...version.shape }))
    .describe('Rules that are damaged or were written by another version: they never run, and can be deleted'),
  maxAutomations: z.int(),
  answersLastHour: z.int().describe('Total of all rules'),
  maxAnswersPerHour: z.int(),
})

export async function showAutomations(ctx: Ctx): Promise<z.infer<typeof automationListSchema>> {
  const now = ctx.now()
  const facts = await listFacts(ctx, now)
  const lastRuns = await readLastRuns(ctx.store)
  const { automations, unreadable } = await listAutomations(ctx)
  const shown: ShownAutomation[] = []
  for (const each of automations) {
    shown.push(show(ctx, each, { facts, lastRuns, now }))
    // The next run of one rule takes some milliseconds if all its runs are in quiet hours.
    await nextTurn()
  }
  return {
    automations: shown,
    unreadable: unreadable.map((row) => ({ ...row, revision: shownRevision(ctx.config, 'automations', row) })),
    maxAutomations: MAX_AUTOMATIONS,
    answersLastHour: (await readAnswers(ctx.store, now)).length,
    maxAnswersPerHour: MAX_ANSWERS_PER_HOUR,
  }
}

export async function showAutomation(ctx: Ctx, automation: Automation): Promise<ShownAutomation> {
  const now = ctx.now()
  return show(ctx, automation, { facts: await listFacts(ctx, now), lastRuns: await readLastRuns(ctx.store), now })
}

type Around = {
  readonly facts: readonly Facts[]
  readonly lastRuns: ReadonlyMap<number, LastRun>
  readonly now: number
}

function show(ctx: Ctx, automation: Automation, { facts, lastRuns, now }: Around): ShownAutomation {
  const { id, rule, anchorAt, createdAt, updatedAt, updatedBy } = automation
  // The rule may have been saved by a runtime that knows more time zones.
  const hasTimes = isTimeZone(rule.timeZone)
  const block = hasTimes ? blockEverywhere(rule, facts, now) : 'error'
  const blockedBy = rule.enabled ? block : null
  return {
    id,
    rule,
    state: rule.enabled ? (blockedBy === null ? 'ready' : 'blocked') : 'off',
    blockedBy,
    runs: ctx.radio !== null,
    nextRunAt: ctx.radio === null || !hasTimes ? null : nextRunAt(rule, anchorAt, now),
    lastRun: lastRuns.get(id) ?? null,
    revision: shownRevision(ctx.config, 'automations', automation),
    createdAt,
    updatedAt,
    updatedBy,
  }
}
