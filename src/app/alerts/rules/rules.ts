import { and, asc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { alertAnchors, alertDestinations, alertMarks, alertRules, alerts, users } from '../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { MAX_ALERT_RULES } from '../../../shared/alerts/alert-kinds.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { timeField } from '../../http/fields.ts'
import { createOnce, type Keyed, type Remember } from '../../http/idempotency.ts'
import { hasWantedRevision, type Precondition, revisionField, shownRevision } from '../../http/preconditions.ts'
import { type AlertKind, kindOf } from '../kinds/kinds.ts'
import { maySee, ownerOf } from '../rights.ts'
import { type AlertRule, alertRuleSchema, parseRule, watchedBy } from './rule.ts'
import { said } from '../../words/words.ts'
import { readWatching, watchingSchema } from './watched-nodes.ts'

const version = {
  id: z.int(),
  revision: revisionField,
  createdAt: timeField,
  updatedAt: timeField,
  owner: z.object({ id: z.int(), username: z.string() }),
}

export const shownRuleSchema = z
  .object({
    ...version,
    rule: alertRuleSchema,
    firing: z.int().describe('Number of its firing alerts'),
    sees: z.boolean().describe('false: its owner may not see what it watches, so it does nothing'),
  })
  .meta({ id: 'ShownAlertRule', description: 'An alert rule and its state' })

export const ruleListSchema = z.object({
  rules: z.array(shownRuleSchema),
  unreadable: z
    .array(z.object({ ...version, name: z.string(), kind: z.string() }))
    .describe('Rules that are damaged or were written by another version: they do nothing, and can be deleted'),
  maxRules: z.int(),
  watching: watchingSchema,
})

const value = sql.placeholder

const queries = prepareOnce((db) => {
  const joined = () =>
    db
      .select({
        row: alertRules,
        username: users.username,
        firing: sql<number>`(select count(*) from alerts a where a.rule_id = ${alertRules.id} and a.state = 'firing')`,
      })
      .from(alertRules)
      .innerJoin(users, eq(users.id, alertRules.ownerId))
  return {
    all: joined().orderBy(asc(alertRules.id)).limit(2000).prepare(),
    own: joined()
      .where(eq(alertRules.ownerId, value('ownerId')))
      .orderBy(asc(alertRules.id))
      .prepare(),
    byId: joined()
      .where(eq(alertRules.id, value('id')))
      .prepare(),
    byUid: joined()
      .where(eq(alertRules.uid, value('uid')))
      .prepare(),
    destinations: db
      .select({ id: alertDestinations.id })
      .from(alertDestinations)
      .where(eq(alertDestinations.ownerId, value('ownerId')))
      .prepare(),
  }
})

type Row = typeof alertRules.$inferSelect
type Found = { readonly row: Row; readonly username: string; readonly firing: number }
type Shown = z.infer<typeof shownRuleSchema>

/** The viewer's rules, or for an administrator those of all users, oldest first. */
export async function listRules(ctx: SignedInCtx, isAll: boolean): Promise<z.infer<typeof ruleListSchema>> {
  const { all, own } = queries(ctx.store)
  const found = isAll ? await all.all() : await own.all({ ownerId: ctx.viewer.user.id })
  const rules: Shown[] = []
  const unreadable: z.infer<typeof ruleListSchema>['unreadable'] = []
  for (const each of found) {
    const shown = show(ctx, each)
    if (shown !== null) rules.push(shown)
    else unreadable.push({ ...versionOf(ctx, each), name: each.row.name, kind: each.row.kind })
  }
  return { rules, unreadable, maxRules: MAX_ALERT_RULES, watching: await readWatching(ctx) }
}

function versionOf({ config }: SignedInCtx, { row, username }: Found) {
  const { id, createdAt, updatedAt, ownerId } = row
  return {
    id,
    revision: shownRevision(config, 'alert_rules', row),
    createdAt,
    updatedAt,
    owner: { id: ownerId, username },
  }
}

function show(ctx: SignedInCtx, found: Found): Shown | null {
  const { viewer } = ctx
  const rule = parseRule(found.row.rule)
  if (rule === null) return null
  const owner = ownerOf(viewer)
  const mayBeBlind = found.row.ownerId === viewer.user.id
  const sees =
    !mayBeBlind || (maySee(owner, kindOf(rule.kind).requires) && kindOf(rule.kind).seesNone?.(rule, owner) !== true)
  return { ...versionOf(ctx, found), rule, firing: found.firing, sees }
}

/** One of the viewer's rules, or for an administrator any rule. Throws `alert_rule_not_found`. */
async function findRule({ store, viewer }: SignedInCtx, id: number, whose: 'own' | 'any'): Promise<Found> {
  const found = await queries(store).byId.get({ id })
  const isVisible = found?.row.ownerId === viewer.user.id || (whose === 'any' && viewer.user.isAdmin)
  if (found === undefined || !isVisible) throw new AppError('alert_rule_not_found')
  return found
}

function readable(ctx: SignedInCtx, found: Found): Shown {
  const shown = show(ctx, found)
  if (shown === null)
    throw new AppError(
      'alert_rule_unreadable',
      'This rule is damaged or was written by another version; it can be deleted',
    )
  return shown
}

/** Throws `alert_rule_not_found`, `alert_rule_unreadable`. */
export async function getRule(ctx: SignedInCtx, id: number): Promise<Shown> {
  return readable(ctx, await findRule(ctx, id, 'any'))
}

/** Requires the permission to see what the rule watches. Throws `forbidden` or `admin_required`. */
export function demandSight({ viewer }: SignedInCtx, kind: AlertKind): void {
  const { requires } = kindOf(kind)
  if (maySee(ownerOf(viewer), requires)) return
  if (requires === 'admin') throw new AppError('admin_required', 'Only administrators may watch backups')
  const resource = requires.find((each) => !viewer.permissions[each].read) ?? 'nodes'
  throw new AppError('forbidden', said('This needs read access to {resource}', { resource }), {
    required: { resource, action: 'read' },
  })
}

async function demandOwnDestinations({ store, viewer }: SignedInCtx, { destinations }: AlertRule): Promise<void> {
  const own = new Set((await queries(store).destinations.all({ ownerId: viewer.user.id })).map(({ id }) => id))
  if (destinations.every((id) => own.has(id))) return
  const message = 'ids of your own destinations'
  throw new AppError('invalid_request', `destinations: ${message}`, { issues: [{ path: 'destinations', message }] })
}

/**
 * Creates a rule. A repeat with the same key gets the rule that the first request created. Throws
 * `too_many_alert_rules`, `invalid_request`, `forbidden`, `admin_required`, `idempotency_key_reused`, and for a repeat
 * `alert_rule_not_found`, `alert_rule_unreadable`.
 */
export async function createRule(ctx: SignedInCtx, rule: AlertRule, keyed: Keyed | null): Promise<Shown> {
  return createOnce(ctx, keyed, {
    create: (remember) => insertRule(ctx, rule, remember),
    repeat: (id) => getRule(ctx, id),
  })
}

async function insertRule(ctx: SignedInCtx, rule: AlertRule, remember: Remember): Promise<Shown> {
  demandSight(ctx, rule.kind)
  await demandOwnDestinations(ctx, rule)
  const { store, viewer } = ctx
  const now = ctx.now()
  const uid = crypto.randomUUID()
  const ownerId = viewer.user.id
  const { name, kind, enabled } = rule
  const id = sql`(select id from alert_rules where uid = ${uid})`
  await store.atomic([
    insertSelect(
      store.db,
      alertRules,
      {
        uid,
        ownerId,
        name,
        kind,
        enabled,
        rule: JSON.stringify(rule),
        revision: 1,
        anchorAt: now,
        createdAt: now,
        updatedAt: now,
      },
      sql`where (select count(*) from ${alertRules} where owner_id = ${ownerId}) < ${MAX_ALERT_RULES}`,
    ),
    audit(ctx, 'alert_rule_updated', { ruleId: id, name, kind, before: null, after: rule }, { onlyIfChanged: true }),
    beginLog(store),
    ...remember(id),
  ])
  const made = await queries(store).byUid.get({ uid })
  if (made === undefined)
    throw new AppError('too_many_alert_rules', said('At most {most} rules are possible', { most: MAX_ALERT_RULES }))
  return readable(ctx, made)
}

/** Older entries of the audit log are not reported. */
function beginLog({ db }: Store): Statement {
  const value = sql`(select coalesce(max(id), 0) from audit_log)`
  return insertSelect(db, alertMarks, { name: 'audit', value }, sql`where true`).onConflictDoNothing()
}

/**
 * Replaces one of the viewer's rules. If it watches something else, or is switched on, it starts over: its alerts end
 * silently. Throws `alert_rule_not_found`, `alert_rule_unreadable`, `alert_rule_changed`, `invalid_request`,
 * `forbidden`, `admin_required`.
 */
export async function replaceRule(ctx: SignedInCtx, id: number, rule: AlertRule, wanted: Precondition): Promise<Shown> {
  const found = await findRule(ctx, id, 'own')
  const before = readable(ctx, found)
  if (!hasWantedRevision(ctx.config, wanted, 'alert_rules', found.row)) throw changed()
  demandSight(ctx, rule.kind)
  await demandOwnDestinations(ctx, rule)
  const text = JSON.stringify(rule)
  if (JSON.stringify(before.rule) === text) return before
  const { store } = ctx
  const now = ctx.now()
  const { name, kind, enabled } = rule
  const isAnother = watchedBy(before.rule) !== watchedBy(rule) || enabled !== before.rule.enabled
  const isAsRead = and(eq(alertRules.id, id), wanted === null ? undefined : eq(alertRules.revision, found.row.revision))
  await store.atomic([
    store.db
      .update(alertRules)
      .set({
        name,
        kind,
        enabled,
        rule: text,
        updatedAt: now,
        revision: sql`${alertRules.revision} + 1`,
        ...(isAnother ? { anchorAt: now } : {}),
      })
      .where(isAsRead),
    audit(
      ctx,
      'alert_rule_updated',
      { ruleId: id, name: before.rule.name, kind, ...differences(before.rule, rule) },
      { onlyIfChanged: true },
    ),
    ...(isAnother ? endAlerts(store, id, now, text) : []),
  ])
  const after = readable(ctx, await findRule(ctx, id, 'own'))
  if (wanted !== null && JSON.stringify(after.rule) !== text) throw changed()
  return after
}

/** Ends the alerts of a rule that now watches something else, if it is stored as `rule`. Nothing is sent. */
function endAlerts({ db }: Store, id: number, now: number, rule: string | null): Statement[] {
  const isDone =
    rule === null
      ? sql`not exists (select 1 from alert_rules where id = ${id})`
      : sql`exists (select 1 from alert_rules where id = ${id} and rule = ${rule})`
  return [
    db.delete(alerts).where(and(eq(alerts.ruleId, id), eq(alerts.state, 'pending'), isDone)),
    db
      .update(alerts)
      .set({ state: 'resolved', resolvedAt: now, inhibited: false })
      .where(and(eq(alerts.ruleId, id), eq(alerts.state, 'firing'), isDone)),
    db.delete(alertAnchors).where(and(eq(alertAnchors.ruleId, id), isDone)),
  ]
}

/** Deletes a rule. Administrators may delete any rule. Throws `alert_rule_not_found`, `alert_rule_changed`. */
export async function deleteRule(ctx: SignedInCtx, id: number, wanted: Precondition): Promise<void> {
  const { row, username } = await findRule(ctx, id, 'any')
  if (!hasWantedRevision(ctx.config, wanted, 'alert_rules', row)) throw changed()
  const { store } = ctx
  const { name, kind } = row
  const isAsRead = and(eq(alertRules.id, id), wanted === null ? undefined : eq(alertRules.revision, row.revision))
  await store.atomic([
    store.db.delete(alertRules).where(isAsRead),
    audit(
      ctx,
      'alert_rule_updated',
      { ruleId: id, owner: username, name, kind, before: parseRule(row.rule) ?? { name, kind }, after: null },
      { onlyIfChanged: true },
    ),
    ...endAlerts(store, id, ctx.now(), null),
  ])
  if (wanted !== null && (await queries(store).byId.get({ id })) !== undefined) throw changed()
}

function changed(): AppError {
  return new AppError('alert_rule_changed', 'The rule was changed meanwhile; read it again')
}

/** The fields that differ, with both values. */
function differences(before: AlertRule, after: AlertRule): { before: object; after: object } {
  const pick = (from: object, other: object) => {
    const known = new Map(Object.entries(other).map(([name, value]) => [name, JSON.stringify(value)]))
    return Object.fromEntries(Object.entries(from).filter(([name, value]) => known.get(name) !== JSON.stringify(value)))
  }
  return { before: pick(before, after), after: pick(after, before) }
}
