import { and, asc, desc, gte, isNotNull, isNull, or, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../../../db/contains.ts'
import { nodes } from '../../../../db/schema.ts'
import type { Store } from '../../../../db/store.ts'
import { seal, unseal } from '../../../base/sealing.ts'
import type { Config } from '../../../config/config.ts'
import { AppError } from '../../../http/errors.ts'
import type { Ctx, Reader } from '../../../base/context.ts'
import {
  ofNodesSeenBy,
  onChannelSeenBy,
  seesEverything,
  type View,
  viewKey,
  viewTag,
} from '../../../accounts/access/visible.ts'
import { arrayBody, type Body, stateTag } from '../../../http/compression.ts'
import { matching, readIndexedFrom } from '../../../search/text-index.ts'
import { keepBodies, readRevision } from './body-cache.ts'
import { nodesSeenBy } from '../seen.ts'
import { type SerialisedNode, type SerialisedNodes, serialiseNodes, serialiseSeen } from './serialised.ts'

/** Nodes in one answer. */
export const MAX_NODES = 5000

const NARROW_LISTS = 16

export type NodeQuery = {
  readonly limit: number
  /** Heard at or after this time, in milliseconds. */
  readonly since?: number | undefined
  /** Part of a name, of the node ID or of the status. */
  readonly q?: string | undefined
  /** Numbers of the only nodes that are wanted. */
  readonly ids?: readonly number[] | undefined
  /** Heard in the last n seconds. */
  readonly activeWithin?: number | undefined
  /** Whether a signature of the node was verified. */
  readonly signed?: boolean | undefined
  /** The cursor of the previous page. The result has the nodes that page left out. Only without filters. */
  readonly cursor?: NodeCursor | undefined
}

/** Where a list of nodes was cut. */
export type NodeCursor = {
  /** The last node of the first page, and the `revision` of the nodes at that time. */
  readonly lastHeard: number | null
  readonly nodeNum: number
  readonly revision: number
  /** The highest node number of the later pages so far. */
  readonly after: number
}

const LABEL = 'cursor of nodes'

/** A cursor from its sealed form. Throws `invalid_request`. */
export async function openNodeCursor({ SESSION_SECRET }: Tagging['config'], sealed: string): Promise<NodeCursor> {
  const text = (await unseal(SESSION_SECRET, LABEL, sealed)) ?? ''
  const parts = /^(\d{0,15})\.(\d{1,10})\.(\d{1,16})\.(\d{1,10})$/.exec(text)
  if (parts === null) {
    const message = 'X-Next-Cursor of the previous response'
    throw new AppError('invalid_request', `cursor: ${message}`, { issues: [{ path: 'cursor', message }] })
  }
  const [, lastHeard = '', nodeNum, revision, after] = parts
  return {
    lastHeard: lastHeard === '' ? null : Number(lastHeard),
    nodeNum: Number(nodeNum),
    revision: Number(revision),
    after: Number(after),
  }
}

function formatNodeCursor({ lastHeard, nodeNum, revision, after }: NodeCursor): string {
  return [lastHeard ?? '', nodeNum, revision, after].join('.')
}

/** What entity tags are derived from. */
type Tagging = { readonly config: Pick<Config, 'SESSION_SECRET'> }

export type NodeList = {
  readonly body: Body
  /** The number of all nodes, on this page or not; null for a list with filters. */
  readonly total: number | null
  /** Sealed: the revision in it counts the changes of all nodes, those included that the viewer may not see. */
  readonly next: string | null
}

const plainLists = keepBodies<NodeList>()
/** A cache of its own for viewers who do not see everything, so that their lists do not displace those of others. */
const narrowLists = keepBodies<NodeList>(NARROW_LISTS)

/** Newest heard first; later pages are sorted by node number. */
export async function listNodes(
  ctx: Reader & Pick<Ctx, 'nodesRevision' | 'now'> & Tagging,
  query: NodeQuery,
): Promise<NodeList> {
  const { store, config, nodesRevision, viewer } = ctx
  const { limit, cursor, since, q, ids, activeWithin, signed } = query
  const isPlain = [since, q, ids, activeWithin, signed].every((filter) => filter === undefined)
  if (!isPlain) return { body: await filterNodes(ctx, query), total: null, next: null }
  const key = cursor === undefined ? String(limit) : `${limit}-${formatNodeCursor(cursor)}`
  const make = async (from: SerialisedNodes, tag: string): Promise<NodeList> => {
    const { page, next } = pageOf(from, limit, cursor)
    return {
      body: await arrayBody(page, stateTag(config, `nodes ${from.revision} ${key}${tag}`)),
      total: from.list.length,
      next: next === null ? null : await seal(config.SESSION_SECRET, LABEL, formatNodeCursor(next)),
    }
  }
  if (seesEverything(viewer.view)) {
    const all = await serialiseNodes(store, nodesRevision)
    return plainLists(store, all.revision, key, () => make(all, ''))
  }
  const seen = await serialiseSeen(store, viewer.view, nodesRevision)
  return narrowLists(store, seen.revision, `${key} ${viewKey(viewer.view)}`, () =>
    make(seen, ` ${viewTag(viewer.view)}`),
  )
}

function pageOf({ list, revision }: SerialisedNodes, limit: number, cursor: NodeCursor | undefined) {
  const left = cursor === undefined ? list : leftOf(list, cursor)
  const page = left.slice(0, limit)
  const last = left.length > limit ? page.at(-1) : undefined
  return { page: page.map(({ json }) => json), next: last === undefined ? null : nextCursor(last) }

  function nextCursor({ lastHeard, nodeNum }: SerialisedNode): NodeCursor {
    return cursor === undefined ? { lastHeard, nodeNum, revision, after: 0 } : { ...cursor, after: nodeNum }
  }
}

/**
 * The nodes that the first page left out, and those that changed since. Otherwise a node that was heard meanwhile would
 * be on neither page.
 */
function leftOf(list: readonly SerialisedNode[], { lastHeard, nodeNum, revision, after }: NodeCursor) {
  const heardAt = lastHeard ?? -Infinity
  const isBehind = (node: SerialisedNode) => {
    const at = node.lastHeard ?? -Infinity
    return at < heardAt || (at === heardAt && node.nodeNum > nodeNum)
  }
  return list
    .filter((node) => node.nodeNum > after && (node.revision > revision || isBehind(node)))
    .toSorted((a, b) => a.nodeNum - b.nodeNum)
}

/**
 * Nodes become inactive as time passes, without a change of the table. The tag therefore includes the number of active
 * nodes.
 */
async function filterNodes(
  { store, config, viewer: { view }, now }: Reader & Pick<Ctx, 'now'> & Tagging,
  query: NodeQuery,
): Promise<Body> {
  const { limit, since, q, ids, activeWithin, signed } = query
  const revision = await readRevision(store, 'nodes')
  const activeSince = activeWithin === undefined ? undefined : now() - activeWithin * 1000
  const conditions = [
    since === undefined ? undefined : gte(nodes.lastHeard, since),
    activeSince === undefined ? undefined : gte(nodes.lastHeard, activeSince),
    q === undefined ? undefined : or(and(matches(q), await indexFinds(store, q)), statusContains(q, view)),
    ids === undefined ? undefined : isOneOf(ids),
    signed === undefined ? undefined : signed ? isNotNull(nodes.signedAt) : isNull(nodes.signedAt),
    view.hidden.size === 0 ? undefined : ofNodesSeenBy(view, nodes.nodeNum),
  ]
  const where = and(...conditions)
  const asked = [limit, since ?? '', activeWithin ?? '', encodeURIComponent(q ?? ''), ids ?? '', signed ?? ''].join('-')
  const tag = seesEverything(view) ? '' : `-${viewTag(view)}`
  const found =
    store.batch === undefined
      ? await pickSerialised(store, view, { revision, where, limit })
      : await readSerialised(store, view, { where, limit })
  return arrayBody(found, stateTag(config, `nodes ${revision} ${asked} ${found.length}${tag}`))
}

/**
 * Picks from the nodes that are cached as JSON, because serialising thousands at once would stop all other requests.
 */
async function pickSerialised(
  store: Store,
  view: View,
  { revision, where, limit }: { revision: number; where: SQL | undefined; limit: number },
): Promise<string[]> {
  const all = seesEverything(view) ? await serialiseNodes(store, revision) : await serialiseSeen(store, view, revision)
  const found = await store.db.select({ id: nodes.id }).from(nodes).where(where).all()
  const ids = new Set(found.map(({ id }) => id))
  return all.list
    .filter(({ id }) => ids.has(id))
    .slice(0, limit)
    .map(({ json }) => json)
}

/** For D1: nothing is kept between requests, and there is no index by time. */
async function readSerialised(
  store: Store,
  view: View,
  { where, limit }: { where: SQL | undefined; limit: number },
): Promise<string[]> {
  const rows = await store.db
    .select()
    .from(nodes)
    .where(where)
    .orderBy(desc(nodes.lastHeard), asc(nodes.nodeNum))
    .limit(limit)
    .all()
  return (await nodesSeenBy(store, view, rows)).map((node) => JSON.stringify(node))
}

/** One parameter for all: D1 takes a hundred of them. */
function isOneOf(ids: readonly number[]): SQL {
  return sql`${nodes.nodeNum} in (select value from json_each(${JSON.stringify(ids)}))`
}

/** Undefined while the index is being built, and for a `q` that is too short for it. */
async function indexFinds(store: Store, q: string): Promise<SQL | undefined> {
  const match = matching(q)
  if (match === null || (await readIndexedFrom(store, 'nodes')) > 1) return undefined
  return sql`${nodes.id} in (select rowid from nodes_text where nodes_text match ${match})`
}

/** Only of a status that the view shows, and only among the nodes that have one. */
function statusContains(q: string, view: View): SQL {
  return sql`${nodes.id} in (select s.id from nodes s where s.status is not null
    and instr(lower(s.status), lower(${q})) > 0 and ${onChannelSeenBy(sql`s.status_channel`, view)})`
}

function matches(q: string): SQL | undefined {
  const nodeId = sql`instr(printf('!%08x', ${nodes.nodeNum}), lower(${q})) > 0`
  return or(contains(nodes.longName, q), contains(nodes.shortName, q), nodeId)
}
