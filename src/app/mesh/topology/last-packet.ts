import { sql } from 'drizzle-orm'
import type { Store } from '../../../db/store.ts'

/** The id of the last packet that was stored by now. Found by halves: the log grows with time, and has no index on it. */
export async function lastPacketBy({ store, now }: { readonly store: Store; readonly now: number }): Promise<number> {
  const newest = await store.db.all<{ id: number; t: number }>(sql`select id, t from packets order by id desc limit 1`)
  const [last] = newest
  if (last === undefined || last.t <= now) return last?.id ?? 0
  let [from, to] = [0, last.id]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const found = await packetFrom(store, middle + 1)
    if (found !== undefined && found.t <= now) from = found.id
    else to = middle
  }
  return from
}

/** The first packet of the log with at least this id. */
export async function packetFrom({ db }: Store, id: number) {
  const rows = await db.all<{ id: number; t: number }>(
    sql`select id, t from packets where id >= ${id} order by id limit 1`,
  )
  return rows[0]
}
