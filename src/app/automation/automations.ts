import { asc, eq, gt, sql } from 'drizzle-orm'
import { automations } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx } from '../context.ts'
import { AppError } from '../errors.ts'
import { type Rule, ruleSchema } from './rules.ts'
import { hasSameTiming } from './slots.ts'

/** Each text that is heard is held against all of them. */
export const MAX_AUTOMATIONS = 50

const MAX_AHEAD_MS = 60_000

type Row = typeof automations.$inferSelect

/** An automation as the engine sees it. */
export type Automation = Pick<
  Row,
  'id' | 'revision' | 'anchorAt' | 'lastFiredAt' | 'createdAt' | 'updatedAt' | 'updatedBy'
> & {
  readonly rule: Rule
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  all: db.select().from(automations).orderBy(asc(automations.id)).prepare(),
  enabled: db.select().from(automations).where(eq(automations.enabled, true)).orderBy(asc(automations.id)).prepare(),
  byId: db
    .select()
    .from(automations)
    .where(eq(automations.id, value('id')))
    .prepare(),
  distrust: db
    .update(automations)
    .set({ anchorAt: sql`${value('now')}` })
    .where(gt(automations.anchorAt, value('limit')))
    .prepare(),
  byName: db
    .select()
    .from(automations)
    .where(sql`lower(${automations.name}) = lower(${value('name')})`)
    .prepare(),
}))

function toAutomation(row: Row): Automation {
  const { id, revision, anchorAt, lastFiredAt, createdAt, updatedAt, updatedBy } = row
  const rule = ruleSchema.parse(JSON.parse(row.rule))
  return { id, revision, anchorAt, lastFiredAt, createdAt, updatedAt, updatedBy, rule }
}

/** In the order in which they were made: the order in which they get to answer. */
export async function listAutomations(store: Store, which: 'all' | 'enabled' = 'all'): Promise<Automation[]> {
  return (await queries(store)[which].all()).map(toAutomation)
}

/** Throws `automation_not_found`. */
export async function getAutomation(store: Store, id: number): Promise<Automation> {
  const row = await queries(store).byId.get({ id })
  if (row === undefined) throw new AppError('automation_not_found')
  return toAutomation(row)
}

async function findByName(store: Store, name: string): Promise<Automation | null> {
  const row = await queries(store).byName.get({ name })
  return row === undefined ? null : toAutomation(row)
}

/** Throws `automation_name_taken`, `too_many_automations`. */
export async function createAutomation(ctx: Ctx, rule: Rule): Promise<Automation> {
  if ((await queries(ctx.store).all.all()).length >= MAX_AUTOMATIONS) {
    throw new AppError('too_many_automations', `There can be ${MAX_AUTOMATIONS} automations`)
  }
  if ((await findByName(ctx.store, rule.name)) !== null) throw new AppError('automation_name_taken')
  const now = ctx.now()
  const { name, kind } = rule
  const id = sql`(select id from automations where lower(name) = lower(${name}))`
  await ctx.store.atomic([
    ctx.store.db.insert(automations).values({
      ...columnsOf(rule),
      revision: 1,
      anchorAt: now,
      createdAt: now,
      updatedAt: now,
      updatedBy: usernameOf(ctx),
    }),
    audit(ctx, 'automation_updated', { automationId: id, name, kind, before: null, after: rule }),
  ])
  const made = await findByName(ctx.store, name)
  if (made === null) throw new Error('an automation that was just made is gone')
  return made
}

/**
 * Replaces a rule. Runs by the clock begin anew when it is switched on or is to run at other times; nothing is due at
 * once by that. Throws `automation_not_found`, `automation_name_taken`.
 */
export async function replaceAutomation(ctx: Ctx, id: number, rule: Rule): Promise<Automation> {
  const before = await getAutomation(ctx.store, id)
  const namesake = await findByName(ctx.store, rule.name)
  if (namesake !== null && namesake.id !== id) throw new AppError('automation_name_taken')
  const changes = changedFields(before.rule, rule)
  if (changes === null) return before
  const now = ctx.now()
  const { kind } = rule
  const startsAnew = (rule.enabled && !before.rule.enabled) || !hasSameTiming(before.rule, rule)
  await ctx.store.atomic([
    ctx.store.db
      .update(automations)
      .set({
        ...columnsOf(rule),
        ...(startsAnew ? { anchorAt: now } : {}),
        revision: sql`${automations.revision} + 1`,
        updatedAt: now,
        updatedBy: usernameOf(ctx),
      })
      .where(eq(automations.id, id)),
    audit(
      ctx,
      'automation_updated',
      { automationId: id, name: before.rule.name, kind, ...changes },
      {
        onlyIfChanged: true,
      },
    ),
  ])
  return getAutomation(ctx.store, id)
}

/** Deletes a rule; what it did stays in the count of answers. Throws `automation_not_found`. */
export async function deleteAutomation(ctx: Ctx, id: number): Promise<void> {
  const { rule } = await getAutomation(ctx.store, id)
  const { name, kind } = rule
  await ctx.store.atomic([
    ctx.store.db.delete(automations).where(eq(automations.id, id)),
    audit(
      ctx,
      'automation_updated',
      { automationId: id, name, kind, before: rule, after: null },
      {
        onlyIfChanged: true,
      },
    ),
  ])
}

/** Forgets times that a clock noted when it was ahead: rules would wait for them. */
export async function distrustFuture(store: Store, now: number): Promise<void> {
  await queries(store).distrust.run({ now, limit: now + MAX_AHEAD_MS })
}

/** Those fields of two rules that differ; null: none. */
function changedFields(before: Rule, after: Rule): { before: object; after: object } | null {
  const [old, next] = [Object.entries(before), Object.entries(after)]
  const text = (value: unknown) => JSON.stringify(value)
  const differs = (from: readonly [string, unknown][], others: object) => {
    const known = new Map(Object.entries(others))
    return Object.fromEntries(from.filter(([key, value]) => text(known.get(key)) !== text(value)))
  }
  const changes = { before: differs(old, after), after: differs(next, before) }
  return Object.keys({ ...changes.before, ...changes.after }).length === 0 ? null : changes
}

function columnsOf(rule: Rule) {
  const { name, kind, enabled } = rule
  return { name, kind, enabled, rule: JSON.stringify(rule) }
}

function usernameOf(ctx: Ctx): string | null {
  return ctx.viewer?.user.username ?? null
}
