import { ownedBy } from '../../base/owned.ts'
import { ne, sql } from 'drizzle-orm'
import { alerts, nodes } from '../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import type { NodeRow } from '../../mesh/ingest/rows/node-row.ts'
import type { Plan } from '../../mesh/ingest/plan.ts'
import { type NodeField, nodeSubject } from '../kinds/kind.ts'
import { ALERT_KINDS, type AlertKind, kindOf } from '../kinds/kinds.ts'
import { listWatching, ofKind } from '../rules/watch-list.ts'
import { run, settle } from './settle.ts'

/** The kinds of rules that are evaluated with each batch of packets, and the fields of a node that they watch. */
const CHANGES = new Map(
  ALERT_KINDS.flatMap((kind) => {
    const changes = kindOf(kind).state?.changes
    return changes === undefined ? [] : [[kind, changes] as const]
  }),
)
type Changes = typeof CHANGES extends Map<AlertKind, infer T> ? T : never

/** Numbers of the nodes that changed, by the kind of rule that watches the change. */
export type Changed = ReadonlyMap<AlertKind, readonly number[]>

/** The columns of the fields that a kind may watch. */
const WATCHED = {
  latitude: nodes.latitude,
  longitude: nodes.longitude,
  publicKey: nodes.publicKey,
  refusedPublicKey: nodes.refusedPublicKey,
  spoofClaim: nodes.spoofClaim,
} satisfies Record<NodeField, unknown>

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  before: db
    .select({ nodeNum: nodes.nodeNum, ...WATCHED })
    .from(nodes)
    .where(sql`node_num in (select value from json_each(${value('nums')}))`)
    .prepare(),
  open: db
    .select()
    .from(alerts)
    .where(
      sql`rule_id in (select value from json_each(${value('ruleIds')})) and ${ne(alerts.state, 'resolved')}
        and +subject in (select value from json_each(${value('subjects')}))`,
    )
    .prepare(),
}))

/** The nodes for which a batch is about to change a field that a rule watches. */
export async function readChanging(store: Store, { heard, late, remembered }: Plan): Promise<Changed> {
  const rules = await listWatching(store)
  const watched = [...CHANGES].filter(([kind]) => ofKind(rules, kind).length > 0)
  const reported = [...heard, ...late, ...remembered].filter((row) =>
    watched.some(([, changes]) => reportsOf(row, changes)),
  )
  if (reported.length === 0) return new Map()
  const nums = JSON.stringify([...new Set(reported.map(({ nodeNum }) => nodeNum))])
  const known = new Map((await queries(store).before.all({ nums })).map((row) => [row.nodeNum, row]))
  return new Map(
    watched.map(([kind, changes]) => {
      const changing = reported.filter((row) => {
        const before = known.get(row.nodeNum)
        if (before === undefined) return reportsOf(row, changes)
        return changes.fields.some((name) => (row[name] ?? before[name]) !== before[name])
      })
      return [kind, [...new Set(changing.map(({ nodeNum }) => nodeNum))]]
    }),
  )
}

function reportsOf(row: NodeRow, { fields }: Changes): boolean {
  return fields.some((name) => row[name] !== undefined && row[name] !== null)
}

/** In milliseconds. During a flood of packets, rules are evaluated no more often than this. */
const EVERY_MS = 1000

type Look = { at: number; readonly waiting: Map<AlertKind, Set<number>> }

/** The time of the latest evaluation, and the nodes that changed since. */
const looks = ownedBy((_db: Store['db']): Look => ({ at: Number.NEGATIVE_INFINITY, waiting: new Map() }))

/**
 * Evaluates the rules that watch these changes, for these nodes only, after the batch that made them. At most once a
 * second: later changes wait for the next batch. The run of each minute catches up on whatever is missed here, for
 * example when the process ends. Returns the owners of changed alerts.
 */
export async function settleChanged(store: Store, changed: Changed, now: number): Promise<readonly number[]> {
  const look = looks(store.db)
  for (const [kind, nums] of changed) {
    if (nums.length > 0) look.waiting.set(kind, new Set([...(look.waiting.get(kind) ?? []), ...nums]))
  }
  if (look.waiting.size === 0 || Math.abs(now - look.at) < EVERY_MS) return []
  look.at = now
  const waiting = [...look.waiting]
  look.waiting.clear()
  const owners = new Set<number>()
  for (const [kind, nums] of waiting) {
    for (const ownerId of await settleKind(store, kind, { nums: [...nums], now })) owners.add(ownerId)
  }
  return [...owners]
}

/**
 * Evaluates the rules of one kind, stores the changed alerts in one step, and returns their owners. Skips rules that
 * watch none of these nodes and have no open alert about them.
 */
async function settleKind(
  store: Store,
  kind: AlertKind,
  about: { readonly nums: readonly number[]; readonly now: number },
): Promise<readonly number[]> {
  const rules = ofKind(await listWatching(store), kind)
  const changes = CHANGES.get(kind)
  if (rules.length === 0 || changes === undefined) return []
  const world = await changes.readWorld(store, rules, about)
  const ruleIds = JSON.stringify(rules.map(({ id }) => id))
  const subjects = JSON.stringify(world.nodes.map(({ nodeNum }) => nodeSubject(nodeNum)))
  const open = Map.groupBy(await queries(store).open.all({ ruleIds, subjects }), ({ ruleId }) => ruleId)
  const statements: Statement[] = []
  const owners: number[] = []
  for (const watching of rules) {
    const ofRule = open.get(watching.id) ?? []
    if (ofRule.length === 0 && !world.nodes.some(changes.watches(watching.rule))) continue
    const settlement = await settle(store, watching, { world, open: ofRule })
    statements.push(...settlement.parts.flat())
    if (settlement.hasChanged) owners.push(watching.ownerId)
  }
  await run(store, statements)
  return owners
}
