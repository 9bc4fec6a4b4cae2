import { desc, max } from 'drizzle-orm'
import { packets, sources } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'

export const MOST_SOURCES = 50
/** The number of packets that are searched for each source's latest one: pages poll, and D1 charges each row. */
export const LATEST_PACKETS = 1000

const queries = prepareOnce((db) => {
  const latest = db
    .select({ sourceId: packets.sourceId, t: packets.t })
    .from(packets)
    .orderBy(desc(packets.id))
    .limit(LATEST_PACKETS)
    .as('latest')
  return {
    sources: db
      .select({
        id: sources.id,
        name: sources.name,
        kind: sources.kind,
        localNodeNum: sources.localNodeNum,
        firmwareVersion: sources.firmwareVersion,
      })
      .from(sources)
      .orderBy(desc(sources.id))
      .limit(MOST_SOURCES)
      .prepare(),
    receipts: db
      .select({ sourceId: latest.sourceId, at: max(latest.t) })
      .from(latest)
      .groupBy(latest.sourceId)
      .prepare(),
  }
})

/** Where packets came from, the latest source first, with the time of the latest packet (Unix milliseconds). */
export async function listSources(store: Store) {
  const known = await queries(store).sources.all()
  const receipts = known.length === 0 ? [] : await queries(store).receipts.all()
  const lastOf = new Map(receipts.map(({ sourceId, at }) => [sourceId, at]))
  return known.map(({ id, ...source }) => ({ ...source, lastReceivedAt: lastOf.get(id) ?? null }))
}
