import { sql, type SQL } from 'drizzle-orm'
import { insertSelect } from '../../db/insert-select.ts'
import { messages, positions, receptions, rowCounts } from '../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../db/store.ts'
import type { Pause } from '../base/pacing/slices.ts'
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
      .offset(SLICE_ROWS)
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
}))

export function isRecounted(store: Store, table: BoundTable): table is Counted {
  return store.packs && Object.hasOwn(COUNTED, table)
}

/** Counts the rows of a table by owner. Returns whether it came to the end: `pause` is awaited after each slice. */
export async function recount(store: Store, table: Counted, pause: Pause): Promise<boolean> {
  const { next, count, clear } = queries(store)[table]
  for (let after = -1; after < Number.MAX_SAFE_INTEGER;) {
    const upTo = (await next.get({ after }))?.owner ?? Number.MAX_SAFE_INTEGER
    await count.run({ after, upTo })
    await clear.run({ after, upTo })
    after = upTo
    if (after < Number.MAX_SAFE_INTEGER && !(await pause())) return false
  }
  return true
}

/** The same for all of them, where no trigger does. */
export async function recountAll(store: Store, pause: Pause): Promise<void> {
  if (!store.packs) return
  for (const table of ['messages', 'receptions', 'positions'] as const)
    if (!(await recount(store, table, pause))) return
}
