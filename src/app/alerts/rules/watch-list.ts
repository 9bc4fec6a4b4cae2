import { ownedBy } from '../../base/owned.ts'
import { and, asc, eq } from 'drizzle-orm'
import { alertRules, revisions, users } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { ALL_PERMISSIONS } from '../../../shared/access/resources.ts'
import { packedPermissions, unpackPermissions } from '../../accounts/users/permissions.ts'
import { scopeColumns, scopeOf } from '../../accounts/users/scope.ts'
import { hiddenNodes, viewOf } from '../../accounts/access/visible.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import type { Watching } from '../kinds/kind.ts'
import { type AlertKind, kindOf } from '../kinds/kinds.ts'
import { maySee } from '../rights.ts'
import { type AlertRule, parseRule } from './rule.ts'

export type WatchingRule = Watching<AlertRule>

const queries = prepareOnce((db) => ({
  revision: db.select({ value: revisions.value }).from(revisions).where(eq(revisions.name, 'alert_rules')).prepare(),
  texts: db.selectDistinct({ rule: alertRules.rule }).from(alertRules).where(eq(alertRules.enabled, true)).prepare(),
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

/** Rules by the JSON that is stored: parsing it takes longer than everything else of the list. */
const parsedRules = ownedBy((_db: Db): { byText: Map<string, AlertRule | null> } => ({ byText: new Map() }))
/** Rules that are parsed before other work gets its turn. */
const AT_A_TIME = 50

type WatchList = { readonly revision: number; readonly rules: readonly WatchingRule[] }
const watchLists = ownedBy((_db: Db): { latest: WatchList | null } => ({ latest: null }))

const readRevision = async (store: Store): Promise<number> => (await queries(store).revision.get())?.value ?? 0

/**
 * Parses changed rules in turns, so that `listWatching`, which gives none, finds them parsed. Costs one look-up while
 * nothing changes.
 */
export async function prepareRules(store: Store): Promise<void> {
  // Where each query is a round trip, nothing is kept, and no event loop waits.
  if (store.batch !== undefined || watchLists(store.db).latest?.revision === (await readRevision(store))) return
  const parsed = parsedRules(store.db)
  for (const [n, { rule }] of (await queries(store).texts.all()).entries()) {
    if (n % AT_A_TIME === AT_A_TIME - 1) await nextTurn()
    if (!parsed.byText.has(rule)) parsed.byText.set(rule, parseRule(rule))
  }
}

/** The rules that are on and whose owners may see what they watch. Costs one look-up while none of that changes. */
export async function listWatching(store: Store): Promise<readonly WatchingRule[]> {
  // Read before the rules: the cached rules may be newer than their revision, never older.
  const revision = await readRevision(store)
  const state = watchLists(store.db)
  if (state.latest?.revision === revision) return state.latest.rules
  const rules: WatchingRule[] = []
  const parsed = parsedRules(store.db)
  // Those that nobody has any more are left out.
  const byText: typeof parsed.byText = new Map()
  // Without a turn for others: the batch that asks is between what it has read and what it stores.
  for (const found of await queries(store).all.all()) {
    const { id, ownerId, anchorAt, isAdmin, packed, rule: text } = found
    const known = parsed.byText.get(text)
    const rule = known === undefined ? parseRule(text) : known
    byText.set(text, rule)
    if (rule === null) continue
    const permissions = isAdmin ? ALL_PERMISSIONS : unpackPermissions(packed)
    const owner = { isAdmin, permissions, view: viewOf(scopeOf(found), permissions, found.hidden) }
    if (maySee(owner, kindOf(rule.kind).requires)) rules.push({ id, ownerId, anchorAt, rule, owner })
  }
  parsed.byText = byText
  state.latest = { revision, rules }
  return rules
}

const byKind = ownedBy((_rules: readonly WatchingRule[]) => new Map<AlertKind, readonly WatchingRule[]>())

/** The rules of one kind. */
export function ofKind(rules: readonly WatchingRule[], kind: AlertKind): readonly WatchingRule[] {
  const known = byKind(rules)
  const found = known.get(kind) ?? rules.filter(({ rule }) => rule.kind === kind)
  known.set(kind, found)
  return found
}
