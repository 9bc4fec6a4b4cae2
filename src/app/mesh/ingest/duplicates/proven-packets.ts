import { sql } from 'drizzle-orm'
import { packets, provenPackets } from '../../../../db/schema.ts'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { prepareOnce, readTogether, type Statement, type Store } from '../../../../db/store.ts'
import { type Arrival, WINDOW_MS } from './packet-window.ts'

// Anybody can send a proven packet again, and it is still proven. A log of rows tells whether it was here before; pages
// would have to be searched as a whole, and a flood shortens them. So their proven packets have rows of their own.

/** A packet for the table. */
export type ProvenRow = {
  readonly fromNodeNum: number
  readonly packetId: number
  readonly t: number
  /** False: it may be proven later. */
  readonly proven: boolean
}

/** An arrival of a proven packet. `at` in milliseconds. */
export type Proven = { readonly from: number; readonly id: number; readonly at: number }

const value = sql.placeholder
const windowMs = sql.raw(String(WINDOW_MS))

const ASKED = sql`json_each(${value('packets')}) k`
const isAsked = (alias: 'p' | 'x') =>
  sql`${sql.raw(alias)}.from_node_num = k.value ->> 'from' and ${sql.raw(alias)}.packet_id = k.value ->> 'id'`

const queries = prepareOnce((db) => ({
  // A forged packet that uses the ID first does not block the sender's own packet.
  logged: db
    .select({ from: sql<number>`p.from_node_num`, id: sql<number>`p.packet_id` })
    .from(
      sql`${ASKED} cross join ${packets} p on ${isAsked('p')}
        and p.t < (k.value ->> 'at') - ${windowMs} and p.trust_level is not 'spoofed'`,
    )
    .prepare(),
  proven: db
    .select({
      from: sql<number>`x.from_node_num`,
      id: sql<number>`x.packet_id`,
      t: sql<number>`x.t`,
      at: sql<number>`k.value ->> 'at'`,
      isProven: sql<number>`x.proven`,
    })
    .from(sql`${ASKED} cross join ${provenPackets} x on ${isAsked('x')}`)
    .prepare(),
  write: prepareJsonInsert(db, provenPackets, {
    values: {
      fromNodeNum: field('fromNodeNum'),
      packetId: field('packetId'),
      t: field('t'),
      proven: field('proven'),
    },
    // A copy with an earlier time would make it old: whoever delivers packets says when they arrived.
    onConflict: sql`on conflict do update set proven = 1 where proven < excluded.proven`,
  }),
}))

/**
 * Which of these packets were here before. `repeated`: more than six hours earlier; when it first arrived, its key may
 * have been unknown. `recent`: all others, whatever came between. Only what is surer is new then: how few hops it took,
 * and whether a radio of ours heard it, is not remembered.
 */
export async function recallProven(
  store: Store,
  arrivals: readonly Proven[],
): Promise<{ readonly repeated: readonly Pick<Proven, 'from' | 'id'>[]; readonly recent: readonly Arrival[] }> {
  const keys = arrivals.filter(({ id }) => id !== 0)
  if (keys.length === 0) return { repeated: [], recent: [] }
  const { logged, proven } = queries(store)
  const [inRows, found] = await readTogether(store, { packets: JSON.stringify(keys) }, [logged, proven])
  const old = found.filter(({ t, at }) => t < at - WINDOW_MS)
  const near = found.filter(({ t, at }) => t >= at - WINDOW_MS)
  return {
    repeated: [...inRows, ...old.map(({ from, id }) => ({ from, id }))],
    recent: near.map(({ from, id, t, isProven }) => ({
      from,
      id,
      at: t,
      hopsAway: 0,
      isReadable: true,
      trustLevel: isProven === 1 ? 'signed' : 'plain',
      isHeard: true,
    })),
  }
}

/**
 * Statements that remember packets, as if they had not arrived longer ago than packets are recognised: one that is
 * delivered late can be sent again just as long. Only where the store packs: rows of the log tell it themselves.
 */
export function writeProven(store: Store, rows: readonly ProvenRow[], now: number): Statement[] {
  if (!store.packs || rows.length === 0) return []
  return [queries(store).write(rows.map((row) => ({ ...row, t: Math.max(row.t, now - WINDOW_MS) })))]
}
