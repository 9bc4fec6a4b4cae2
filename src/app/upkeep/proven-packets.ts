import * as z from 'zod'
import { sql } from 'drizzle-orm'
import { provenPackets } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { beginPass, endPass, leaveAt } from '../base/pacing/sweeps.ts'

/** Rows looked at, and perhaps deleted, in one transaction at most. */
const SLICE_ROWS = 2000

const value = sql.placeholder
// No index says how old they are: it would be one more written row for each packet.
const IS_AFTER = sql`(from_node_num, packet_id) > (${value('from')}, ${value('id')})`

const queries = prepareOnce((db) => ({
  any: db.select({ t: provenPackets.t }).from(provenPackets).limit(1).prepare(),
  // The row that many rows further, or none.
  end: db
    .select({ from: provenPackets.fromNodeNum, id: provenPackets.packetId })
    .from(provenPackets)
    .where(IS_AFTER)
    .orderBy(provenPackets.fromNodeNum, provenPackets.packetId)
    .limit(1)
    .offset(value('rows'))
    .prepare(),
  old: db
    .delete(provenPackets)
    .where(
      sql`${IS_AFTER} and (from_node_num, packet_id) <= (${value('lastFrom')}, ${value('lastId')})
        and t < ${value('cutoff')}`,
    )
    .returning({ id: provenPackets.packetId })
    .prepare(),
}))

const placeSchema = z.object({ from: z.int(), id: z.int() })
const START = { from: -1, id: 0 }
const LAST = { from: Number.MAX_SAFE_INTEGER, id: 0 }

/**
 * Deletes what is remembered of packets whose `t` is before `cutoff`, in slices; awaits `pause` after each, which
 * returns whether to continue. The next run continues where this one stopped. `restMs` as in `Shares`. Returns the
 * number of rows.
 */
export async function deleteOldProven(
  store: Store,
  cutoff: number,
  {
    pause,
    share = wholeSlices,
    restMs = 0,
  }: { readonly pause: Pause; readonly share?: Share; readonly restMs?: number },
): Promise<number> {
  const { any, end, old } = queries(store)
  if ((await any.get()) === undefined) return 0
  const pass = await beginPass(store, 'proven_packets', cutoff, restMs)
  if (pass === null) return 0
  const { cutoff: before } = pass
  let deleted = 0
  for (let place = placeSchema.safeParse(pass.place).data ?? START; ;) {
    const next = await end.get({ ...place, rows: partOf(SLICE_ROWS, share()) })
    const { from: lastFrom, id: lastId } = next ?? LAST
    const removed = await store.lazily(() => old.all({ ...place, lastFrom, lastId, cutoff: before }))
    deleted += removed.length
    if (next === undefined) {
      await endPass(store, 'proven_packets')
      return deleted
    }
    place = next
    if (await pause()) continue
    await leaveAt(store, 'proven_packets', place)
    return deleted
  }
}
