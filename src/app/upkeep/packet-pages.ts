import { sql } from 'drizzle-orm'
import { packetPages } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import type { Pause } from '../base/pacing/slices.ts'

/** Pages deleted in one transaction, at most. */
const SLICE_PAGES = 20

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  oldest: db
    .select({ t: packetPages.tLast, firstId: packetPages.firstId, lastId: packetPages.lastId })
    .from(packetPages)
    .orderBy(packetPages.firstId)
    .limit(1)
    .prepare(),
  total: db
    .select({ packets: sql<number>`coalesce(sum(packets), 0)` })
    .from(packetPages)
    .prepare(),
  oldPages: db
    .delete(packetPages)
    .where(
      sql`first_id in (select first_id from (select first_id, t_last from packet_pages
        where first_id < (select max(first_id) from packet_pages) order by first_id limit ${sql.raw(String(SLICE_PAGES))})
        where t_last < ${value('cutoff')})`,
    )
    .returning({ packets: packetPages.packets })
    .prepare(),
  // Without packets the last page still tells where the ids go on.
  only: db
    .update(packetPages)
    .set({
      firstId: sql`last_id + 1`,
      packets: 0,
      replayed: 0,
      ports: '[]',
      receivers: '[]',
      signed: '[]',
      keys: '[]',
      body: '[]',
    })
    .where(sql`first_id = ${value('firstId')} and last_id = ${value('lastId')} and t_last < ${value('cutoff')}`)
    .prepare(),
}))

/**
 * Deletes the oldest pages beyond this many packets in pages, in slices as `deleteOldPages`. Pages know no share of a
 * sender: its packets would have to be cut out of pages of many others.
 */
export async function trimPages(store: Store, most: number, pause: Pause): Promise<number> {
  const prepared = queries(store)
  const total = (await prepared.total.get())?.packets ?? 0
  let packets = 0
  while (total - packets > most) {
    const deleted = await store.lazily(() => prepared.oldPages.all({ cutoff: Number.MAX_SAFE_INTEGER }))
    if (deleted.length === 0) break
    packets += deleted.reduce((sum, page) => sum + page.packets, 0)
    if (!(await pause())) break
  }
  return packets
}

/**
 * Deletes pages of the packet log whose latest packet is older than `cutoff`, in slices; awaits `pause` after each, which
 * returns whether to continue. Returns the number of packets.
 */
export async function deleteOldPages(store: Store, cutoff: number, pause: Pause): Promise<number> {
  const prepared = queries(store)
  for (let packets = 0; ;) {
    const oldest = await prepared.oldest.get()
    if (oldest === undefined || oldest.t >= cutoff || oldest.lastId < oldest.firstId) return packets
    const deleted = await store.lazily(() => prepared.oldPages.all({ cutoff }))
    packets += deleted.reduce((sum, page) => sum + page.packets, 0)
    if (deleted.length === 0) {
      const { firstId, lastId } = oldest
      await store.lazily(() => prepared.only.run({ firstId, lastId, cutoff }))
      return packets + lastId - firstId + 1
    }
    if (!(await pause())) return packets
  }
}
