import { ownedBy } from '../../base/owned.ts'
import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { alertMarks, nodes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { timeField } from '../../http/fields.ts'
import { kindOf } from '../kinds/kinds.ts'
import { type Watched, watchedColumns, watcher, type WatchedNode } from '../world/watched.ts'
import type { AlertRule } from './rule.ts'
import { listWatching, type WatchingRule } from './watch-list.ts'

/** When the rules were last evaluated: a row of `alert_marks`. */
const MARK = 'evaluated'

const nodeColumns = {
  ...watchedColumns,
  lastHeard: nodes.lastHeard,
  longName: nodes.longName,
  nameAltered: nodes.nameAltered,
}
type KnownNode = WatchedNode & Pick<typeof nodes.$inferSelect, 'lastHeard' | 'longName' | 'nameAltered'>

const queries = prepareOnce((db) => ({
  nodes: db.select(nodeColumns).from(nodes).prepare(),
  evaluated: db.select({ at: alertMarks.value }).from(alertMarks).where(eq(alertMarks.name, MARK)).prepare(),
  mark: db
    .insert(alertMarks)
    .values({ name: MARK, value: sql.placeholder('at') })
    .onConflictDoUpdate({ target: alertMarks.name, set: { value: sql`excluded.value` } })
    .prepare(),
}))

/** Records that the rules were evaluated. Nobody waits for the disk: the next run records it again. */
export async function noteEvaluated(store: Store, at: number): Promise<void> {
  await store.lazily(() => queries(store).mark.run({ at }))
}

/** A run may take a while, or stop early once. */
const LATE_MS = 5 * MINUTE_MS

export const watchingSchema = z
  .object({
    rules: z.int().describe('Number of your rules that are on and may see what they watch'),
    nodes: z.int().describe('Number of nodes that they watch, each counted once'),
    evaluatedAt: timeField
      .nullable()
      .describe('When the rules of this service were last evaluated, which happens each minute; null: not yet'),
    isLate: z.boolean().describe('They were evaluated before, but not in the last five minutes'),
  })
  .meta({ id: 'AlertWatching', description: 'What your rules watch now' })

/** What the viewer's rules watch now. On D1 changes of nodes may be a minute late. */
export async function readWatching(ctx: SignedInCtx): Promise<z.infer<typeof watchingSchema>> {
  const { store } = ctx
  const rules = await readOwnRules(ctx)
  const lists = rules.flatMap(({ rule }) => watchedOf(rule) ?? []).map((watched) => watcher(watched))
  const known = lists.length === 0 ? [] : await readWatchable(ctx)
  const evaluatedAt = (await queries(store).evaluated.get())?.at ?? null
  return {
    rules: rules.length,
    nodes: known.filter((node) => lists.some((isWatched) => isWatched(node))).length,
    evaluatedAt,
    isLate: evaluatedAt !== null && ctx.now() - evaluatedAt > LATE_MS,
  }
}

export type OwnRule = WatchingRule

/** The viewer's rules that are on and see what they watch. */
export async function readOwnRules({ store, viewer }: SignedInCtx): Promise<readonly OwnRule[]> {
  return (await listWatching(store)).filter(
    ({ ownerId, rule, owner }) => ownerId === viewer.user.id && kindOf(rule.kind).seesNone?.(rule, owner) !== true,
  )
}

/** The nodes that a rule is about; null: it is about none. */
export function watchedOf(rule: AlertRule): Watched | null {
  return 'nodes' in rule ? rule.nodes : null
}

/** If each row read is charged, the nodes are cached for this long. */
const KEPT_MS = MINUTE_MS

const latest = ownedBy((_db: Store['db']): { at: number; rows: readonly KnownNode[] } => ({
  at: Number.NEGATIVE_INFINITY,
  rows: [],
}))

/** All nodes that the viewer may see. */
export async function readWatchable({ store, viewer, now }: SignedInCtx): Promise<readonly KnownNode[]> {
  const kept = latest(store.db)
  const at = now()
  if (store.batch === undefined || at < kept.at || at - kept.at >= KEPT_MS) {
    const rows = await queries(store).nodes.all()
    if (store.batch !== undefined) Object.assign(kept, { at, rows })
    return rows.filter(({ nodeNum }) => seesNodes(viewer.view, [nodeNum]))
  }
  return kept.rows.filter(({ nodeNum }) => seesNodes(viewer.view, [nodeNum]))
}
