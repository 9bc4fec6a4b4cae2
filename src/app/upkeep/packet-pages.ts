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
  old: db
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
 * Deletes pages of the packet log whose latest packet is older than `cutoff`, in slices; awaits `pause` after each, which
 * returns whether to continue. Returns the number of packets.
 */
export async function deleteOldPages(store: Store, cutoff: number, pause: Pause): Promise<number> {
  const prepared = queries(store)
  for (let packets = 0; ;) {
    const oldest = await prepared.oldest.get()
    if (oldest === undefined || oldest.t >= cutoff || oldest.lastId < oldest.firstId) return packets
    const deleted = await store.lazily(() => prepared.old.all({ cutoff }))
    packets += deleted.reduce((sum, page) => sum + page.packets, 0)
    if (deleted.length === 0) {
      const { firstId, lastId } = oldest
      await store.lazily(() => prepared.only.run({ firstId, lastId, cutoff }))
      return packets + lastId - firstId + 1
    }
    if (!(await pause())) return packets
  }
}
