import { sql } from 'drizzle-orm'
import { built, type Store } from '../db/store.ts'

/**
 * What the migrations make and D1 does without, because each entry and each count is one more written row, for each
 * packet. Nodes are 20,000 at most, and lists of them are read as a whole; rows are counted when it matters
 * (retention/recount.ts). A migration that drops or replaces one of them needs `if exists`.
 * See docs/edge.md, What it costs.
 */
export const UNNEEDED = {
  index: ['nodes_last_heard', 'heard_links_t'],
  trigger: [
    'messages_counted',
    'messages_uncounted',
    'receptions_counted',
    'receptions_uncounted',
    'positions_counted',
    'positions_uncounted',
  ],
} as const

const NAMES = JSON.stringify(Object.values(UNNEEDED).flat())

/** Drops them, as migrations or a restore may have made them again. */
export async function dropUnneeded({ db, atomic }: Pick<Store, 'db' | 'atomic'>): Promise<void> {
  const found = await db.all<{ type: string; name: string }>(
    sql`select type, name from sqlite_master where name in (select value from json_each(${NAMES}))`,
  )
  const [first, ...others] = found.map(({ type, name }) => built(db, sql.raw(`drop ${type} if exists ${name}`)))
  if (first !== undefined) await atomic([first, ...others])
}
