import { and, asc, eq } from 'drizzle-orm'
import { alertRules, revisions, users } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { ALL_PERMISSIONS } from '../../../shared/access/resources.ts'
import type { AlertKind } from '../../../shared/alerts/alert-kinds.ts'
import { packedPermissions, unpackPermissions } from '../../users/permissions.ts'
import { scopeColumns, scopeOf } from '../../sharing/scope.ts'
import { hiddenNodes, viewOf } from '../../sharing/visible.ts'
import { type AlertOwner, maySee } from '../rights.ts'
import { type AlertRule, type AlertRuleOf, parseRule } from './rule.ts'

type Watching<R extends AlertRule> = {
  readonly id: number
  readonly ownerId: number
  readonly anchorAt: number
  readonly rule: R
  readonly owner: AlertOwner
}

/** A rule that is on, with its owner's present permissions. */
export type WatchingRule<K extends AlertKind = AlertKind> = Watching<AlertRuleOf<K>>

const queries = prepareOnce((db) => ({
  revision: db.select({ value: revisions.value }).from(revisions).where(eq(revisions.name, 'alert_rules')).prepare(),
  all: db
    .select({
      id: alertRules.id,
      ownerId: alertRules.ownerId,
      anchorAt: alertRules.anchorAt,
      rule: alertRules.rule,
      isAdmin: users.isAdmin,
      packed: packedPermissions,
      ...scopeColumns,
      hidden: hiddenNodes,
    })
    .from(alertRules)
    .innerJoin(users, eq(users.id, alertRules.ownerId))
    .where(and(eq(alertRules.enabled, true), eq(users.isActive, true)))
    .orderBy(asc(alertRules.id))
    .prepare(),
}))

const kept = new WeakMap<Db, { readonly revision: number; readonly rules: readonly WatchingRule[] }>()

/** The rules that are on and whose owners may see what they watch. One look-up while nothing of that changes. */
export async function listWatching(store: Store): Promise<readonly WatchingRule[]> {
  // Before the rules are read: the cached rules may be newer than their revision, never older.
  const revision = (await queries(store).revision.get())?.value ?? 0
  const known = kept.get(store.db)
  if (known !== undefined && known.revision === revision) return known.rules
  const rules = (await queries(store).all.all()).flatMap((found): WatchingRule[] => {
    const { id, ownerId, anchorAt, isAdmin, packed, rule: text } = found
    const rule = parseRule(text)
    const permissions = isAdmin ? ALL_PERMISSIONS : unpackPermissions(packed)
    const owner = { isAdmin, permissions, view: viewOf(scopeOf(found), permissions, found.hidden) }
    return rule === null || !maySee(owner, rule.kind) ? [] : [{ id, ownerId, anchorAt, rule, owner }]
  })
  kept.set(store.db, { revision, rules })
  return rules
}

const byKind = new WeakMap<readonly WatchingRule[], Map<AlertKind, readonly WatchingRule[]>>()

/** The rules of one kind. */
export function ofKind<K extends AlertKind>(
  rules: readonly WatchingRule[],
  kind: K,
): readonly Watching<AlertRuleOf<K>>[] {
  const known = byKind.get(rules) ?? new Map<AlertKind, readonly WatchingRule[]>()
  byKind.set(rules, known)
  const found = known.get(kind) ?? rules.filter(({ rule }) => rule.kind === kind)
  known.set(kind, found)
  return asKind<K>(found)
}

// They were selected by this kind.
function asKind<K extends AlertKind>(rules: readonly WatchingRule[]): readonly WatchingRule<K>[] {
  const any: unknown = rules
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return any as readonly WatchingRule<K>[]
}
