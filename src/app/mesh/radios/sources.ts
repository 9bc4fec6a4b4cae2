import { desc, eq, max, sql } from 'drizzle-orm'
import { hasPages, LAST_PACKET, packetsWithin } from '../../../db/packet-log.ts'
import { apiTokens, packets, radioListeners, sources, users } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { isListeningAt, readKinds } from './listener.ts'

export const MAX_SOURCES = 50
/** The number of packets that are searched for each source's latest one: pages poll, and D1 charges each row. */
export const LATEST_PACKETS = 1000

/** When each source of the latest packets was last heard, by the log or by its end. */
function prepareReceipts(db: Db, log: typeof packets | ReturnType<typeof packetsWithin>) {
  const latest = db
    .select({ sourceId: packets.sourceId, t: packets.t })
    .from(log)
    .orderBy(desc(packets.id))
    .limit(LATEST_PACKETS)
    .as('latest')
  return db
    .select({ sourceId: latest.sourceId, at: max(latest.t) })
    .from(latest)
    .groupBy(latest.sourceId)
    .prepare()
}

const queries = prepareOnce((db) => {
  return {
    sources: db
      .select({
        id: sources.id,
        name: sources.name,
        kind: sources.kind,
        localNodeNum: sources.localNodeNum,
        firmwareVersion: sources.firmwareVersion,
        tokenId: apiTokens.id,
        tokenName: apiTokens.name,
        owner: users.username,
        listensTo: radioListeners.kinds,
        listenedAt: radioListeners.listenedAt,
      })
      .from(sources)
      .leftJoin(apiTokens, eq(apiTokens.id, sources.tokenId))
      .leftJoin(users, eq(users.id, apiTokens.userId))
      .leftJoin(radioListeners, eq(radioListeners.sourceId, sources.id))
      .orderBy(desc(sources.id))
      .limit(MAX_SOURCES)
      .prepare(),
    receipts: prepareReceipts(db, packets),
    packedReceipts: prepareReceipts(
      db,
      packetsWithin(sql`${LAST_PACKET} - ${sql.raw(String(LATEST_PACKETS))} + 1`, sql`${LAST_PACKET} + 1`),
    ),
  }
})

/**
 * Where packets came from, the latest source first, with the time of the latest packet (Unix milliseconds). `token`: the
 * one that delivers a collector's source; null for others, and for all unless `withTokens`. `sends`: what its collector
 * listens for at `now`.
 */
export async function listSources(
  store: Store,
  { withTokens, now = null }: { readonly withTokens: boolean; readonly now?: number | null },
) {
  const known = await queries(store).sources.all()
  const { receipts: plain, packedReceipts } = queries(store)
  const receipts = known.length === 0 ? [] : await ((await hasPages(store)) ? packedReceipts : plain).all()
  const lastOf = new Map(receipts.map(({ sourceId, at }) => [sourceId, at]))
  return known.map(({ id, tokenId, tokenName, owner, listensTo, listenedAt, ...source }) => {
    const isListening = now !== null && listenedAt !== null && isListeningAt(listenedAt, now)
    const sends = isListening && tokenId !== null ? readKinds(listensTo ?? '[]') : []
    const isNamed = withTokens && tokenId !== null && tokenName !== null && owner !== null
    const token = isNamed ? { id: tokenId, name: tokenName, owner } : null
    return { ...source, lastReceivedAt: lastOf.get(id) ?? null, token, sends }
  })
}
