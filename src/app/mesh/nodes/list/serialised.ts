import { ownedBy } from '../../../base/owned.ts'
import { and, asc, gt, sql } from 'drizzle-orm'
import { nodes } from '../../../../db/schema.ts'
import { type Db, prepareOnce, readTogether, type Store } from '../../../../db/store.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import { readRevision } from './body-cache.ts'
import { publicNode } from '../nodes.ts'
import { channelsOf, nodesSeenBy, readNodeRows, seesWhole } from '../seen.ts'
import type { NodeChannels } from '../../../accounts/access/visible.ts'
import { seesNodes, type View, viewKey } from '../../../accounts/access/visible.ts'

/** A node as the API returns it. */
export type SerialisedNode = {
  /** The id of its row. */
  readonly id: number
  readonly nodeNum: number
  readonly lastHeard: number | null
  readonly revision: number
  readonly channels: NodeChannels
  readonly json: string
}

export type SerialisedNodes = {
  /** The revision of the table. It changes with every change of the table. */
  readonly revision: number
  /** Newest heard first. */
  readonly list: readonly SerialisedNode[]
}

/** The maximum number of nodes serialised before other work gets its turn. */
const SLICE = 500
/** The first slice is smaller: its rows may have to be read from disk, and its code is not compiled yet. */
const FIRST_SLICE = 50
/** How long a slice should hold the event loop, in milliseconds. */
const AIM_MS = 6

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

/** All nodes of a database, as last serialised. */
const serialised = ownedBy((_db: Db): { latest: SerialisedNodes | null } => ({ latest: null }))

/**
 * All nodes. Only those that changed since the last call are read and serialised again. `seen`: the revision of the
 * table, if it was just read.
 */
export async function serialiseNodes(store: Store, seen?: number): Promise<SerialisedNodes> {
  // Read before the rows: cached rows may be newer than their revision, never older.
  const revision = seen ?? (await readRevision(store, 'nodes'))
  const state = serialised(store.db)
  const known = state.latest
  if (known !== null && known.revision >= revision) return known
  const found = known === null ? null : await addChanged(store, known)
  const unsorted = found ?? (await readChanged(store, -1)).nodes
  if (unsorted.length > SLICE) await nextTurn()
  const list = unsorted.toSorted(byLastHeard)
  if (state.latest !== null && state.latest.revision >= revision) return state.latest
  const next = { revision, list }
  state.latest = next
  if (list.length > SLICE) await nextTurn()
  return next
}

/** Null if nodes were deleted since, because no row shows which. */
async function addChanged(store: Store, known: SerialisedNodes): Promise<readonly SerialisedNode[] | null> {
  const { nodes: found, count } = await readChanged(store, known.revision)
  const changed = new Map(found.map((node) => [node.nodeNum, node]))
  const same = known.list.filter(({ nodeNum }) => !changed.has(nodeNum))
  return count === same.length + changed.size ? [...changed.values(), ...same] : null
}

async function readChanged(store: Store, since: number) {
  const { changed, count } = queries(store)
  // If each query is a network round trip, one loads everything. Otherwise slices keep other work from waiting.
  let limit = store.batch === undefined ? FIRST_SLICE : -1
  const all: SerialisedNode[] = []
  for (let after = 0; ;) {
    const begun = performance.now()
    const [rows, [counted]] = await readTogether(store, { since, after, limit }, [changed, count])
    for (const row of rows) {
      const { id, nodeNum, lastHeard, revision } = row
      all.push({ id, nodeNum, lastHeard, revision, channels: channelsOf(row), json: JSON.stringify(publicNode(row)) })
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length !== limit) return { nodes: all, count: counted?.n ?? 0 }
    after = last.id
    const tookMs = Math.max(performance.now() - begun, AIM_MS / 4)
    limit = Math.max(FIRST_SLICE, Math.min(SLICE, Math.floor((limit * AIM_MS) / tookMs)))
    await nextTurn()
  }
}

function byLastHeard(a: SerialisedNode, b: SerialisedNode): number {
  return (b.lastHeard ?? -Infinity) - (a.lastHeard ?? -Infinity) || a.nodeNum - b.nodeNum
}

/** The number of partial views whose nodes are kept. */
const KEPT_VIEWS = 8

/**
 * The nodes as a view shows them. For each node that it shows partly, also the complete node from which it was made.
 */
type Seen = SerialisedNodes & {
  readonly of: SerialisedNodes
  readonly narrowed: ReadonlyMap<SerialisedNode, SerialisedNode>
}
const seenByView = ownedBy((_db: Db) => new Map<string, Seen>())

/**
 * As `serialiseNodes`, for a view that does not show everything. Nodes that it shows completely are the same objects.
 */
export async function serialiseSeen(store: Store, view: View, seen?: number): Promise<SerialisedNodes> {
  const of = await serialiseNodes(store, seen)
  const views = seenByView(store.db)
  const key = viewKey(view)
  const known = views.get(key)
  if (known?.of === of) return known
  const shown = of.list.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
  const lacking = shown.filter(({ channels }) => !seesWhole(view, channels))
  const narrowed = await narrow(store, view, lacking, known?.narrowed)
  const list = shown.flatMap((node) => (seesWhole(view, node.channels) ? node : (narrowed.get(node) ?? [])))
  const next = { revision: of.revision, list, of, narrowed }
  views.delete(key)
  views.set(key, next)
  const [oldest] = views.size > KEPT_VIEWS ? views.keys() : []
  if (oldest !== undefined) views.delete(oldest)
  return next
}

/** For an unchanged node, the earlier result is reused, because its earlier values change only with it. */
async function narrow(
  store: Store,
  view: View,
  lacking: readonly SerialisedNode[],
  before: ReadonlyMap<SerialisedNode, SerialisedNode> | undefined,
): Promise<Map<SerialisedNode, SerialisedNode>> {
  const narrowed = new Map<SerialisedNode, SerialisedNode>()
  const fresh = lacking.filter((node) => {
    const known = before?.get(node)
    if (known !== undefined) narrowed.set(node, known)
    return known === undefined
  })
  for (let from = 0; from < fresh.length; from += SLICE) {
    const slice = fresh.slice(from, from + SLICE)
    const rows = await readNodeRows(
      store,
      slice.map(({ id }) => id),
    )
    const found = new Map((await nodesSeenBy(store, view, rows)).map((node) => [node.nodeNum, node]))
    for (const node of slice) {
      const shown = found.get(node.nodeNum)
      if (shown !== undefined) narrowed.set(node, { ...node, json: JSON.stringify(shown) })
    }
    if (fresh.length > SLICE) await nextTurn()
  }
  return narrowed
}
