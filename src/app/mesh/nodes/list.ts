import { and, asc, desc, gte, isNotNull, isNull, or, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../../db/contains.ts'
import { nodes } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { type Body, createBodyCache, readRevision } from './body-cache.ts'
import { publicNode } from './nodes.ts'

/** Nodes in one answer. */
export const MAX_NODES = 5000

export type NodeQuery = {
  readonly limit: number
  /** Heard at or after this time, in milliseconds. */
  readonly since?: number | undefined
  /** Part of a name or of the node id. */
  readonly q?: string | undefined
  /** Heard in the last so many seconds. */
  readonly activeWithin?: number | undefined
  /** Whether a signature of the node was verified. */
  readonly signed?: boolean | undefined
}

const queries = prepareOnce((db) => ({ all: select(db, undefined).limit(sql.placeholder('limit')).prepare() }))

const plainList = createBodyCache('nodes')

/** Newest heard first. */
export async function listNodes(store: Store, query: NodeQuery, now: number): Promise<Body> {
  const { limit, since, q, activeWithin, signed } = query
  const isPlain = [since, q, activeWithin, signed].every((filter) => filter === undefined)
  if (!isPlain) return filterNodes(store, query, now)
  return plainList(store, String(limit), async () => serialise(await queries(store).all.all({ limit })))
}

/** Which nodes are active changes with time alone, but then their number does: the tag has it in it. */
async function filterNodes(store: Store, query: NodeQuery, now: number): Promise<Body> {
  const { limit, since, q, activeWithin, signed } = query
  const revision = await readRevision(store, 'nodes')
  const activeSince = activeWithin === undefined ? undefined : now - activeWithin * 1000
  const conditions = [
    since === undefined ? undefined : gte(nodes.lastHeard, since),
    activeSince === undefined ? undefined : gte(nodes.lastHeard, activeSince),
    q === undefined ? undefined : matches(q),
    signed === undefined ? undefined : signed ? isNotNull(nodes.signedAt) : isNull(nodes.signedAt),
  ]
  const rows = await select(store.db, and(...conditions))
    .limit(limit)
    .all()
  const asked = [limit, since ?? '', activeWithin ?? '', encodeURIComponent(q ?? ''), signed ?? ''].join('-')
  return { json: serialise(rows), etag: `"${revision}-${asked}-${rows.length}"` }
}

function serialise(rows: readonly (typeof nodes.$inferSelect)[]): string {
  return JSON.stringify(rows.map(publicNode))
}

function matches(q: string): SQL | undefined {
  const nodeId = sql`instr(printf('!%08x', ${nodes.nodeNum}), lower(${q})) > 0`
  return or(contains(nodes.longName, q), contains(nodes.shortName, q), nodeId)
}

function select(db: Db, where: SQL | undefined) {
  return db.select().from(nodes).where(where).orderBy(desc(nodes.lastHeard), asc(nodes.nodeNum)).$dynamic()
}

/** Whether an If-None-Match header has the tag (RFC 9110, 13.1.2: a list, `*`, weak comparison). */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(/(?:W\/)?"[^"]*"/g)?.some((tag) => tag.replace(/^W\//, '') === etag) ?? false
}
