import { and, asc, gt, sql } from 'drizzle-orm'
import { nodes } from '../../../db/schema.ts'
import { type Db, prepareOnce, readTogether, type Store } from '../../../db/store.ts'
import { nextTurn } from '../../http/limits/next-turn.ts'
import { readRevision } from './body-cache.ts'
import { publicNode } from './nodes.ts'

/** A node as the API returns it. */
export type SerialisedNode = {
  readonly nodeNum: number
  readonly lastHeard: number | null
  /** Of its row. */
  readonly revision: number
  readonly json: string
}

export type SerialisedNodes = {
  /** Of the table: changes with every change of it. */
  readonly revision: number
  /** Newest heard first. */
  readonly list: readonly SerialisedNode[]
}

/** Nodes serialised before other work gets its turn. */
const SLICE = 500

const queries = prepareOnce((db) => ({
  changed: db
    .select()
    .from(nodes)
    .where(and(gt(nodes.revision, sql.placeholder('since')), gt(nodes.id, sql.placeholder('after'))))
    .orderBy(asc(nodes.id))
    .limit(sql.placeholder('limit'))
    .prepare(),
  count: db
    .select({ n: sql<number>`count(*)` })
    .from(nodes)
    .prepare(),
}))

const kept = new WeakMap<Db, SerialisedNodes>()

/**
 * All nodes. Only those that changed since the last call are read and serialised again. `seen`: the revision of the
 * table, if it was just read.
 */
export async function serialiseNodes(store: Store, seen?: number): Promise<SerialisedNodes> {
  // Before the rows are read: the cached rows may be newer than their revision, never older.
  const revision = seen ?? (await readRevision(store, 'nodes'))
  const known = kept.get(store.db)
  if (known !== undefined && known.revision >= revision) return known
  const found = known === undefined ? null : await addChanged(store, known)
  const list = (found ?? (await readChanged(store, -1)).nodes).toSorted(byLastHeard)
  const latest = kept.get(store.db)
  if (latest !== undefined && latest.revision >= revision) return latest
  const next = { revision, list }
  kept.set(store.db, next)
  return next
}

/** Null if some were deleted since: no row shows which. */
async function addChanged(store: Store, known: SerialisedNodes): Promise<readonly SerialisedNode[] | null> {
  const { nodes: found, count } = await readChanged(store, known.revision)
  const changed = new Map(found.map((node) => [node.nodeNum, node]))
  const same = known.list.filter(({ nodeNum }) => !changed.has(nodeNum))
  return count === same.length + changed.size ? [...changed.values(), ...same] : null
}

async function readChanged(store: Store, since: number) {
  const { changed, count } = queries(store)
  // Where a query is a round trip it loads everything; elsewhere nobody waits for long.
  const limit = store.batch === undefined ? SLICE : -1
  const all: SerialisedNode[] = []
  for (let after = 0; ;) {
    const [rows, [counted]] = await readTogether(store, { since, after, limit }, [changed, count])
    for (const row of rows) {
      const { nodeNum, lastHeard, revision } = row
      all.push({ nodeNum, lastHeard, revision, json: JSON.stringify(publicNode(row)) })
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length !== limit) return { nodes: all, count: counted?.n ?? 0 }
    after = last.id
    await nextTurn()
  }
}

function byLastHeard(a: SerialisedNode, b: SerialisedNode): number {
  return (b.lastHeard ?? -Infinity) - (a.lastHeard ?? -Infinity) || a.nodeNum - b.nodeNum
}
