import type { RuleMark } from '../mesh/radios/radio.ts'
import { and, asc, eq, gt, ne, type SQL, sql } from 'drizzle-orm'
import { automations } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx, Ports } from '../base/context.ts'
import { AppError, type Conflict } from '../http/errors.ts'
import { createOnce, type Keyed, type Remember } from '../http/idempotency.ts'
import { hasWantedRevision, type Precondition } from '../http/preconditions.ts'
import { MINUTE_MS } from '../../shared/time.ts'
import type { Rule } from './rules.ts'
import { hasSameTiming } from './slots.ts'
import { type Automation, readAutomation, toUnreadable, type Unreadable } from './stored-rule.ts'
import { said } from '../words/words.ts'

/** What the index on the names of rules reports. */
export const AUTOMATION_CONFLICTS: readonly Conflict[] = [[/UNIQUE.*automations_name/, 'automation_name_taken']]

/** The maximum number of rules, because each text that is heard is compared with all of them. */
export const MAX_AUTOMATIONS = 50

/** A time further ahead than this was recorded by a wrong clock. */
const MAX_AHEAD_MS = MINUTE_MS

type Row = typeof automations.$inferSelect
type Needs = Pick<Ports, 'store' | 'log'>

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  all: db.select().from(automations).orderBy(asc(automations.id)).prepare(),
  enabled: db.select().from(automations).where(eq(automations.enabled, true)).orderBy(asc(automations.id)).prepare(),
  byId: db
    .select()
    .from(automations)
    .where(eq(automations.id, value('id')))
    .prepare(),
  current: db
    .select({ id: automations.id })
    .from(automations)
    .where(sql`id = ${value('automationId')} and revision = ${value('revision')} and enabled`)
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

/** In the order of creation, which is also the order in which they may answer. */
export async function listAutomations(
  needs: Needs,
  which: 'all' | 'enabled' = 'all',
): Promise<{ readonly automations: Automation[]; readonly unreadable: Unreadable[] }> {
  const found: { automations: Automation[]; unreadable: Unreadable[] } = { automations: [], unreadable: [] }
  for (const row of await queries(needs.store)[which].all()) {
    const automation = readAutomation(needs, row)
    if (automation === null) found.unreadable.push(toUnreadable(row))
    else found.automations.push(automation)
  }
  return found
}

/** Throws `automation_not_found`, `automation_unreadable`. */
export async function getAutomation(needs: Needs, id: number): Promise<Automation> {
  return readable(needs, await getRow(needs.store, id))
}

/** Throws `automation_not_found`. */
export async function requireAutomation(store: Store, id: number): Promise<void> {
  await getRow(store, id)
}

/** Whether a rule is on and unchanged. */
export async function isCurrent(store: Store, rule: RuleMark): Promise<boolean> {
  return (await queries(store).current.get(rule)) !== undefined
}

async function getRow(store: Store, id: number): Promise<Row> {
  const row = await queries(store).byId.get({ id })
  if (row === undefined) throw new AppError('automation_not_found')
  return row
}

function readable(needs: Needs, row: Row): Automation {
  const automation = readAutomation(needs, row)
  if (automation !== null) return automation
  throw new AppError(
    'automation_unreadable',
    'This rule is damaged or was written by another version; you can delete it',
  )
}

function requireMatch({ config }: Ctx, wanted: Precondition, row: Pick<Row, 'id' | 'revision' | 'updatedBy'>): void {
  if (!hasWantedRevision(config, wanted, 'automations', row)) throw changedBy(row)
}

function changedBy(row: Pick<Row, 'updatedBy'>): AppError {
  return new AppError(
    'automation_changed',
    row.updatedBy === null
      ? 'Changed in the meantime; reload it'
      : said('Changed by {updatedBy} in the meantime; reload it', { updatedBy: row.updatedBy }),
  )
}

/**
 * A repeat with the same key gets the rule that the first request created. Throws `automation_name_taken`,
 * `too_many_automations`, `idempotency_key_reused`, and for a repeat `automation_not_found`, `automation_unreadable`.
 */
export async function createAutomation(ctx: Ctx, rule: Rule, keyed: Keyed | null): Promise<Automation> {
  return createOnce(ctx, keyed, {
    create: (remember) => insertAutomation(ctx, rule, remember),
    repeat: (id) => getAutomation(ctx, id),
  })
}

async function insertAutomation(ctx: Ctx, rule: Rule, remember: Remember): Promise<Automation> {
  if ((await queries(ctx.store).all.all()).length >= MAX_AUTOMATIONS) {
    throw new AppError('too_many_automations', said('At most {most} rules are possible', { most: MAX_AUTOMATIONS }))
  }
  if ((await queries(ctx.store).byName.get({ name: rule.name })) !== undefined)
    throw new AppError('automation_name_taken')
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
    ...remember(id),
  ])
  const made = await queries(ctx.store).byName.get({ name })
  if (made === undefined) throw new Error('the automation that was just created is gone')
  return readable(ctx, made)
}

/**
 * Replaces a rule and withdraws its queued messages. Scheduled runs start over when the rule is switched on or its
 * times change; this never makes a run due immediately. Throws `automation_not_found`, `automation_unreadable`,
 * `automation_changed`, `automation_name_taken`.
 */
export async function replaceAutomation(ctx: Ctx, id: number, rule: Rule, wanted: Precondition): Promise<Automation> {
  const before = await getAutomation(ctx, id)
  requireMatch(ctx, wanted, before)
  const namesake = await queries(ctx.store).byName.get({ name: rule.name })
  if (namesake !== undefined && namesake.id !== id) throw new AppError('automation_name_taken')
  const changes = changedFields(before.rule, rule)
  if (changes === null) return before
  const now = ctx.now()
  const { kind } = rule
  const columns = columnsOf(rule)
  const startsAnew = (rule.enabled && !before.rule.enabled) || !hasSameTiming(before.rule, rule)
  await ctx.store.atomic([
    ctx.store.db
      .update(automations)
      .set({
        ...columns,
        ...(startsAnew ? { anchorAt: now } : {}),
        revision: sql`${automations.revision} + 1`,
        updatedAt: now,
        updatedBy: usernameOf(ctx),
      })
      // Another request may have made the same change since the rule was read.
      .where(and(isWanted(before, wanted), ne(automations.rule, columns.rule))),
    audit(
      ctx,
      'automation_updated',
      { automationId: id, name: before.rule.name, kind, ...changes },
      {
        onlyIfChanged: true,
      },
    ),
  ])
  const after = await getAutomation(ctx, id)
  const isOther = changedFields(after.rule, rule) !== null
  if (wanted !== null && isOther) throw changedBy(after)
  ctx.radio?.withdraw(({ automationId, revision }) => automationId === id && revision < after.revision)
  return after
}

/** Whether it is still the version that was read matters only if the caller asked for that version. */
function isWanted({ id, revision }: Pick<Row, 'id' | 'revision'>, wanted: Precondition): SQL | undefined {
  return and(eq(automations.id, id), wanted === null ? undefined : eq(automations.revision, revision))
}

/**
 * Deletes a rule and withdraws its queued messages; its runs still count towards the limit of answers. Throws
 * `automation_not_found`, `automation_changed`.
 */
export async function deleteAutomation(ctx: Ctx, id: number, wanted: Precondition): Promise<void> {
  const row = await getRow(ctx.store, id)
  requireMatch(ctx, wanted, row)
  const { name, kind } = row
  const rule = readAutomation(ctx, row)?.rule ?? { name, kind, enabled: row.enabled }
  await ctx.store.atomic([
    ctx.store.db.delete(automations).where(isWanted(row, wanted)),
    audit(
      ctx,
      'automation_updated',
      { automationId: id, name, kind, before: rule, after: null },
      {
        onlyIfChanged: true,
      },
    ),
  ])
  if (wanted !== null) {
    const after = await queries(ctx.store).byId.get({ id })
    if (after !== undefined) throw changedBy(after)
  }
  ctx.radio?.withdraw(({ automationId }) => automationId === id)
}

/** Drops times recorded by a clock that was ahead, because rules would wait for them. */
export async function forgetFutureAnchors(store: Store, now: number): Promise<void> {
  await queries(store).distrust.run({ now, limit: now + MAX_AHEAD_MS })
}

/** The fields in which two rules differ; null: none. */
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
