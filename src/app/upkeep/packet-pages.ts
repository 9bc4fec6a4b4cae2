import { sql } from 'drizzle-orm'
import { LAST_ID, SEQUENCES } from '../../db/packet-log.ts'
import { packetPages } from '../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../db/store.ts'
import type { Pause } from '../base/pacing/slices.ts'

/** Pages deleted in one transaction, at most. */
const SLICE_PAGES = 20

const value = sql.placeholder

const IS_LAST = sql`first_id = ${value('firstId')} and last_id = ${value('lastId')} and t_last < ${value('cutoff')}`

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
  // On the edge the last page still tells without packets where the ids go on.
  empty: db
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
    .where(IS_LAST)
    .prepare(),
  // Elsewhere the sequence of the rows tells it.
  sequence: db
    .update(SEQUENCES)
    .set({ seq: sql`${LAST_ID}` })
    .where(sql`name = 'packets' and seq < ${LAST_ID}`)
    .prepare(),
  only: db.delete(packetPages).where(IS_LAST).prepare(),
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
    if (oldest === undefined || oldest.t >= cutoff) return packets
    const deleted = await store.lazily(() => prepared.oldPages.all({ cutoff }))
    packets += deleted.reduce((sum, page) => sum + page.packets, 0)
    if (deleted.length === 0) return packets + (await clearLast(store, oldest, cutoff))
    if (!(await pause())) return packets
  }
}

/** Deletes the packets of the only page. Its last id is not used again. */
async function clearLast(
  store: Store,
  { firstId, lastId }: { readonly firstId: number; readonly lastId: number },
  cutoff: number,
): Promise<number> {
  const { empty, sequence, only } = queries(store)
  const page = { firstId, lastId, cutoff }
  if (!store.packs) await store.atomic([bind(sequence, {}), bind(only, page)], 'lazily')
  else if (firstId <= lastId) await store.lazily(() => empty.run(page))
  return lastId - firstId + 1
}
