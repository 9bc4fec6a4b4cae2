import { ne, sql } from 'drizzle-orm'
import { alerts, nodes } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import type { NodeRow } from '../mesh/ingest/node-row.ts'
import type { Plan } from '../mesh/ingest/plan.ts'
import { nodeSubject } from './kinds/finding.ts'
import { readWorldOf } from './read-world.ts'
import { listWatching, ofKind } from './rules/watch-list.ts'
import { settle } from './settle.ts'

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
      sql`rule_id = ${value('ruleId')} and ${ne(alerts.state, 'resolved')}
        and subject in (select value from json_each(${value('subjects')}))`,
    )
    .prepare(),
}))

/** The nodes whose position or key a batch is about to change, if a rule watches that. */
export async function readChanging(store: Store, { heard, late, remembered }: Plan): Promise<readonly number[]> {
  const rules = await listWatching(store)
  const [hasAreas, hasKeys] = [ofKind(rules, 'area').length > 0, ofKind(rules, 'key').length > 0]
  if (!hasAreas && !hasKeys) return []
  const told = [...heard, ...late, ...remembered].filter(
    (row) => (hasAreas && row.latitude !== undefined) || (hasKeys && tellsOfKey(row)),
  )
  if (told.length === 0) return []
  const nums = [...new Set(told.map(({ nodeNum }) => nodeNum))]
  const known = new Map(
    (await queries(store).before.all({ nums: JSON.stringify(nums) })).map((row) => [row.nodeNum, row]),
  )
  const changing = told.filter((row) => {
    const before = known.get(row.nodeNum)
    return before === undefined || CHANGES.some((name) => (row[name] ?? before[name]) !== before[name])
  })
  return [...new Set(changing.map(({ nodeNum }) => nodeNum))]
}

const CHANGES = ['latitude', 'longitude', 'publicKey', 'refusedPublicKey', 'spoofClaim'] as const

function tellsOfKey({ publicKey, refusedPublicKey, spoofClaim }: NodeRow): boolean {
  return [publicKey, refusedPublicKey, spoofClaim].some((each) => each !== undefined && each !== null)
}

/** In milliseconds: a flood of packets is looked at no more often. */
const EVERY_MS = 1000

/** When it was looked last, and which nodes have changed since. */
const looks = new WeakMap<Store['db'], { at: number; waiting: Set<number> }>()

/**
 * Evaluates rules about positions and keys for these nodes only, after the batch that changed them, at most once a second:
 * later changes wait for the next batch. What is missed here, for example when the process ends, the run of each minute
 * catches up on. Returns the owners of changed alerts.
 */
export async function settleChanged(store: Store, changed: readonly number[], now: number): Promise<readonly number[]> {
  const look = looks.get(store.db) ?? { at: Number.NEGATIVE_INFINITY, waiting: new Set() }
  looks.set(store.db, look)
  for (const nodeNum of changed) look.waiting.add(nodeNum)
  if (look.waiting.size === 0 || Math.abs(now - look.at) < EVERY_MS) return []
  const nums = [...look.waiting]
  look.at = now
  look.waiting.clear()
  const rules = await listWatching(store)
  const world = await readWorldOf(store, nums, now)
  const subjects = JSON.stringify(world.nodes.map(({ nodeNum }) => nodeSubject(nodeNum)))
  const owners = new Set<number>()
  for (const watching of rules) {
    if (watching.rule.kind !== 'area' && watching.rule.kind !== 'key') continue
    const open = await queries(store).open.all({ ruleId: watching.id, subjects })
    if (await settle(store, watching, { world, open })) owners.add(watching.ownerId)
  }
  return [...owners]
}
