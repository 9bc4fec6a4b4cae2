import { type Placeholder, sql } from 'drizzle-orm'
import { neighbors, nodes, renumberings } from '../../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../../db/store.ts'
import { partOf, type Share, wholeSlices } from '../../upkeep/slice-share.ts'

/** More are not kept: anybody can make numbers up, on the air as well. */
export const MOST_NODES = 20_000
/** Nodes that one look-up finds. */
const LOOK_UP_NODES = 1000
/** Nodes forgotten in one transaction at most. */
const SLICE_NODES = 100

const value: (name: string) => Placeholder = sql.placeholder
const among = (column: string) => sql`${sql.raw(column)} in (select value from json_each(${value('keys')}))`

const queries = prepareOnce((db) => ({
  count: db
    .select({ n: sql<number>`count(*)` })
    .from(nodes)
    .prepare(),
  // Who was heard once goes before who was heard again: numbers that are made up push out each other, not real ones.
  surplus: db
    .select({ id: nodes.id, nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(sql`not is_local and not is_favorite and not is_ignored and notes = ''`)
    .orderBy(sql`coalesce(last_heard > first_heard, 0), coalesce(last_heard, first_heard), id`)
    .limit(value('nodes'))
    .prepare(),
  neighbors: db.delete(neighbors).where(among('node_num')).prepare(),
  renumberings: db
    .delete(renumberings)
    .where(sql`${among('from_node_num')} or ${among('to_node_num')}`)
    .prepare(),
  nodes: db.delete(nodes).where(among('id')).prepare(),
}))

/**
 * Forgets the nodes beyond `most`, in slices; `pause` is awaited after each and answers whether to go on. Those of which
 * somebody said something stay, and so do our own. Their history goes with `sweepForgotten`. Answers how many are
 * forgotten.
 */
export async function forgetSurplusNodes(
  store: Store,
  pause: () => Promise<boolean>,
  { share = wholeSlices, most = MOST_NODES }: { share?: Share; most?: number } = {},
): Promise<number> {
  const { count, surplus } = queries(store)
  for (let forgotten = 0; ;) {
    const excess = ((await count.get())?.n ?? 0) - most
    if (excess <= 0) return forgotten
    const found = await surplus.all({ nodes: Math.min(excess, LOOK_UP_NODES) })
    if (found.length === 0 || !(await pause())) return forgotten
    for (let slice; (slice = found.splice(0, partOf(SLICE_NODES, share()))).length > 0;) {
      await forgetNodes(store, slice)
      forgotten += slice.length
      if (!(await pause())) return forgotten
    }
  }
}

type Surplus = { readonly id: number; readonly nodeNum: number }

async function forgetNodes(store: Store, slice: readonly Surplus[]): Promise<void> {
  const { neighbors: links, renumberings: numbers, nodes: rows } = queries(store)
  const keys = JSON.stringify(slice.map(({ nodeNum }) => nodeNum))
  const ids = JSON.stringify(slice.map(({ id }) => id))
  await store.atomic([bind(links, { keys }), bind(numbers, { keys }), bind(rows, { keys: ids })])
}
