import { type Placeholder, sql } from 'drizzle-orm'
import { LATEST, packetFromId } from '../../../db/packet-log.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'

const value: (name: string) => Placeholder = sql.placeholder
const ofPacket = { id: sql<number>`id`, t: sql<number>`t` }

const queries = prepareOnce((db: Db) => ({
  latest: db
    .select(ofPacket)
    .from(sql`(${LATEST})`)
    .prepare(),
  from: db
    .select(ofPacket)
    .from(sql`(${packetFromId(value('id'))})`)
    .prepare(),
}))

/** The id of the last packet that was stored by now. Found by halves: the log grows with time, and has no index on it. */
export async function lastPacketBy({ store, now }: { readonly store: Store; readonly now: number }): Promise<number> {
  const last = await queries(store).latest.get()
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
export async function packetFrom(
  store: Store,
  id: number,
): Promise<{ readonly id: number; readonly t: number } | undefined> {
  return queries(store).from.get({ id })
}
