import { ne, sql } from 'drizzle-orm'
import { alerts, nodes } from '../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../db/store.ts'
import type { NodeRow } from '../mesh/ingest/node-row.ts'
import type { Plan } from '../mesh/ingest/plan.ts'
import { nodeSubject } from './kinds/finding.ts'
import { readKeys, readPlaces } from './read-world.ts'
import { listWatching, ofKind } from './rules/watch-list.ts'
import { watcher } from './rules/watched.ts'
import { run, settle } from './settle.ts'

/** The kinds of rules that are evaluated with the packets, and what of a node they watch. */
const WATCHED = {
  area: ['latitude', 'longitude'],
  key: ['publicKey', 'refusedPublicKey', 'spoofClaim'],
} as const satisfies Record<string, readonly (keyof NodeRow)[]>
type Kind = keyof typeof WATCHED
const KINDS = ['area', 'key'] as const satisfies readonly Kind[]

/** Numbers of the nodes that changed, by the kind of rule that watches the change. */
export type Changed = Readonly<Record<Kind, readonly number[]>>

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  before: db
    .select({
      nodeNum: nodes.nodeNum,
      latitude: nodes.latitude,
      longitude: nodes.longitude,
      publicKey: nodes.publicKey,
      refusedPublicKey: nodes.refusedPublicKey,
      spoofClaim: nodes.spoofClaim,
    })
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

/** The nodes whose position or key a batch is about to change, if a rule watches that. */
export async function readChanging(store: Store, { heard, late, remembered }: Plan): Promise<Changed> {
  const rules = await listWatching(store)
  const kinds = KINDS.filter((kind) => ofKind(rules, kind).length > 0)
  const told = [...heard, ...late, ...remembered].filter((row) => kinds.some((kind) => tellsOf(row, kind)))
  if (told.length === 0) return { area: [], key: [] }
  const nums = JSON.stringify([...new Set(told.map(({ nodeNum }) => nodeNum))])
  const known = new Map((await queries(store).before.all({ nums })).map((row) => [row.nodeNum, row]))
  const changed = (kind: Kind) => {
    const changing = told.filter((row) => {
      const before = known.get(row.nodeNum)
      if (before === undefined) return tellsOf(row, kind)
      return WATCHED[kind].some((name) => (row[name] ?? before[name]) !== before[name])
    })
    return kinds.includes(kind) ? [...new Set(changing.map(({ nodeNum }) => nodeNum))] : []
  }
  return { area: changed('area'), key: changed('key') }
}

function tellsOf(row: NodeRow, kind: Kind): boolean {
  return WATCHED[kind].some((name) => row[name] !== undefined && row[name] !== null)
}

/** In milliseconds: a flood of packets is looked at no more often. */
const EVERY_MS = 1000

type Look = { at: number; readonly waiting: Readonly<Record<Kind, Set<number>>> }

/** When it was looked last, and which nodes have changed since. */
const looks = new WeakMap<Store['db'], Look>()

/**
 * Evaluates rules about positions and keys for these nodes only, after the batch that changed them, at most once a second:
 * later changes wait for the next batch. What is missed here, for example when the process ends, the run of each minute
 * catches up on. Returns the owners of changed alerts.
 */
export async function settleChanged(store: Store, changed: Changed, now: number): Promise<readonly number[]> {
  const look = looks.get(store.db) ?? { at: Number.NEGATIVE_INFINITY, waiting: { area: new Set(), key: new Set() } }
  looks.set(store.db, look)
  for (const kind of KINDS) for (const nodeNum of changed[kind]) look.waiting[kind].add(nodeNum)
  if (KINDS.every((kind) => look.waiting[kind].size === 0) || Math.abs(now - look.at) < EVERY_MS) return []
  look.at = now
  const owners = new Set<number>()
  for (const kind of KINDS) {
    const nums = [...look.waiting[kind]]
    look.waiting[kind].clear()
    for (const ownerId of await settleKind(store, kind, { nums, now })) owners.add(ownerId)
  }
  return [...owners]
}

/**
 * The owners of changed alerts, which are stored in one step. Rules that watch none of these nodes, and have no open
 * alert of them, are left out.
 */
async function settleKind(
  store: Store,
  kind: Kind,
  about: { readonly nums: readonly number[]; readonly now: number },
): Promise<readonly number[]> {
  const all = await listWatching(store)
  const rules = ofKind(all, kind)
  if (rules.length === 0 || about.nums.length === 0) return []
  const world = await (kind === 'area' ? readPlaces(store, ofKind(all, 'area'), about) : readKeys(store, about))
  const ruleIds = JSON.stringify(rules.map(({ id }) => id))
  const subjects = JSON.stringify(world.nodes.map(({ nodeNum }) => nodeSubject(nodeNum)))
  const open = Map.groupBy(await queries(store).open.all({ ruleIds, subjects }), ({ ruleId }) => ruleId)
  const statements: Statement[] = []
  const owners: number[] = []
  for (const watching of rules) {
    const ofRule = open.get(watching.id) ?? []
    if (ofRule.length === 0 && !world.nodes.some(watcher(watching.rule.nodes))) continue
    const settlement = await settle(store, watching, { world, open: ofRule })
    statements.push(...settlement.statements)
    if (settlement.hasChanged) owners.push(watching.ownerId)
  }
  await run(store, statements)
  return owners
}
