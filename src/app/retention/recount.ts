import { sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../db/insert-select.ts'
import { messages, positions, provenPackets, receptions, rowCounts } from '../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../db/store.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { endPass, leaveAt, readPlace } from '../base/pacing/sweeps.ts'
import type { BoundTable } from './bounds.ts'

/** Rows counted by one statement, without those of the last owner. */
const SLICE_ROWS = 200_000

const value = sql.placeholder

/** Where each row that is written costs, no trigger counts the rows of these tables: they are counted when it matters. */
const COUNTED = {
  messages: { rows: sql`${messages} x`, key: sql`x.from_node_num` },
  receptions: {
    rows: sql`${messages} x cross join ${receptions} r on r.message_id = x.id`,
    key: sql`x.from_node_num`,
  },
  positions: { rows: sql`${positions} x`, key: sql`x.node_id` },
  proven_packets: { rows: sql`${provenPackets} x`, key: sql`x.from_node_num` },
} as const satisfies Partial<Record<BoundTable, { readonly rows: SQL; readonly key: SQL }>>

type Counted = keyof typeof COUNTED

function prepareTable(db: Db, table: Counted) {
  const { rows, key } = COUNTED[table]
  const ofTable = sql`table_name = ${sql.raw(`'${table}'`)}`
  const within = sql`${key} > ${value('after')} and ${key} <= ${value('upTo')}`
  const owners = table === 'receptions' ? COUNTED.messages.rows : rows
  return {
    // The owner of the row that many rows further.
    next: db
      .select({ owner: sql<number>`${key}` })
      .from(owners)
      .where(sql`${key} > ${value('after')}`)
      .orderBy(key)
      .limit(1)
      .offset(value('rows'))
      .prepare(),
    count: insertSelect(
      db,
      rowCounts,
      { table: sql.raw(`'${table}'`), owner: key, n: sql`count(*)` },
      sql`from ${rows} where ${within} group by ${key} on conflict do update set n = excluded.n where n <> excluded.n`,
    ).prepare(),
    clear: db
      .delete(rowCounts)
      .where(
        sql`${ofTable} and owner > ${value('after')} and owner <= ${value('upTo')}
          and not exists (select 1 from ${rows} where ${key} = owner)`,
      )
      .prepare(),
  }
}

const queries = prepareOnce((db) => ({
  messages: prepareTable(db, 'messages'),
  receptions: prepareTable(db, 'receptions'),
  positions: prepareTable(db, 'positions'),
  proven_packets: prepareTable(db, 'proven_packets'),
}))

export function isRecounted(store: Store, table: BoundTable): table is Counted {
  return store.packs && Object.hasOwn(COUNTED, table)
}

/** `pause` is awaited after each slice, and ends the work when it returns false. */
type Pace = { readonly pause: Pause; readonly share?: Share }

const TABLES = ['messages', 'receptions', 'positions', 'proven_packets'] as const satisfies readonly Counted[]
const placeSchema = z.object({ table: z.enum(TABLES), after: z.int() })
/** The place behind all owners. */
const LAST = Number.MAX_SAFE_INTEGER

/**
 * Counts the rows of a table by owner, from where the last run stopped. Returns whether it came to the end `now`, in an
 * earlier run `before`, or not yet. After the end it counts anew only after `needsCount`.
 */
export async function recount(store: Store, table: Counted, pace: Pace): Promise<'now' | 'before' | 'not yet'> {
  const name = `counts_of_${table}` as const
  const begun = placeSchema.safeParse(await readPlace(store, name)).data
  if (begun?.after === LAST) return 'before'
  const stopped = await countAfter(store, table, begun?.after ?? -1, pace)
  await leaveAt(store, name, { table, after: stopped ?? LAST })
  return stopped === null ? 'now' : 'not yet'
}

/** The counts of a table are not those of its rows any more. */
export function needsCount(store: Store, table: Counted): Promise<void> {
  return endPass(store, `counts_of_${table}`)
}

/** Counts the rows of all these tables, where no trigger does, as `recount` does; anew after it came to the end. */
export async function recountAll(store: Store, pace: Pace): Promise<boolean> {
  if (!store.packs) return true
  const begun = placeSchema.safeParse(await readPlace(store, 'counts')).data ?? null
  for (const table of begun === null ? TABLES : TABLES.slice(TABLES.indexOf(begun.table))) {
    const stopped = await countAfter(store, table, begun?.table === table ? begun.after : -1, pace)
    if (stopped === null) continue
    await leaveAt(store, 'counts', { table, after: stopped })
    return false
  }
  if (begun !== null) await endPass(store, 'counts')
  return true
}

/** Returns the owner at which `pause` stopped it; null: it came to the end. */
async function countAfter(
  store: Store,
  table: Counted,
  first: number,
  { pause, share = wholeSlices }: Pace,
): Promise<number | null> {
  const { next, count, clear } = queries(store)[table]
  for (let after = first; ;) {
    const upTo = (await next.get({ after, rows: partOf(SLICE_ROWS, share()) }))?.owner ?? LAST
    await count.run({ after, upTo })
    await clear.run({ after, upTo })
    after = upTo
    if (after === LAST) return null
    if (!(await pause())) return after
  }
}
