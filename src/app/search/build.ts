import { and, eq, sql } from 'drizzle-orm'
import { integer, sqliteTable, text as textColumn } from 'drizzle-orm/sqlite-core'
import { textIndexes } from '../../db/schema.ts'
import type { Store } from '../../db/store.ts'
import type { Ports } from '../base/context.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { merge, mergeTextIndexes, SLICE } from './merging.ts'
import { createPart, dropParts, keepParts, monthOf, PART } from './parts.ts'
import { MARK, readIndexedFrom, readParts, type TextTable } from './text-index.ts'
import { rangeOf } from './walk.ts'

/** The searchable text of a row, as the triggers of the migrations write it to the index, and when it has the mark. */
const TEXTS = {
  messages: ['text', 'or id % 16384 = 0'],
  nodes: [
    "coalesce(long_name, '') || char(10) || coalesce(short_name, '') || char(10) || printf('!%08x', node_num)",
    '',
  ],
  audit_log: [
    "coalesce(username, '') || char(10) || action || char(10) || details || char(10) || coalesce(ip, '')",
    '',
  ],
} as const satisfies Record<TextTable, unknown>

const TEXT_TABLES: readonly TextTable[] = ['messages', 'nodes', 'audit_log']

/** Virtual tables are not in the schema, because backups and migrations are made from it. */
const rowsOf = (index: string) => sqliteTable(index, { rowid: integer('rowid'), text: textColumn('text') })

/**
 * Indexes rows that an older version or a backup has left, the newest first, keeps one part of the index of
 * messages for each month, and merges.
 * Decision: docs/decisions/text-search.md
 */
export async function buildTextIndexes(
  { store, log, now }: Pick<Ports, 'store' | 'log' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<void> {
  for (const table of TEXT_TABLES) {
    const from = await readIndexedFrom(store, table)
    // Imported messages come before 1.
    const least = table === 'messages' ? Math.min(1, (await rangeOf(store, table)).from) : 1
    for (let left = from; left > least;) {
      left = await buildSlice(store, table, { from: left, least }, share())
      if (!(await pause())) return
    }
    if (from > least) log.info('Texts can be searched by an index', { table })
  }
  await keepParts(store, now())
  await dropParts(store)
  await mergeTextIndexes(store, pause, share)
}

/** Indexes this share of a slice of rows below `from`. Returns where the next slice continues: `least` at the end. */
async function buildSlice(
  store: Store,
  table: TextTable,
  { from, least }: { readonly from: number; readonly least: number },
  share: number,
): Promise<number> {
  const { db } = store
  const name = sql.raw(table)
  const [text, mark] = TEXTS[table].map((part) => sql.raw(part))
  const below = sql`select id from ${name} where id < ${from} order by id desc limit 1 offset ${partOf(SLICE, share) - 1}`
  const lowest = (await db.all<{ id: number }>(below))[0]?.id ?? least
  const index = table === 'messages' ? await partBelow(store, from) : `${table}_text`
  const indexed = rowsOf(index)
  // Changes nothing if another instance was faster.
  const isOurTurn = and(eq(textIndexes.table, table), eq(textIndexes.indexedFrom, from))
  await store.atomic(
    [
      db.insert(indexed)
        .select(sql`select id, iif(instr(${text}, char(0)) > 0 ${mark}, ${MARK}, '') || ${text} from ${name}
          where id >= ${lowest} and id < ${from} and exists (select 1 from ${textIndexes} where ${isOurTurn})`),
      db.update(textIndexes).set({ indexedFrom: lowest }).where(isOurTurn),
      merge(store, index, partOf(SLICE, share)),
    ],
    'lazily',
  )
  return readIndexedFrom(store, table)
}

/** The part for messages that are not indexed yet, below this id: a new one if they are of an earlier month. */
async function partBelow(store: Store, from: number): Promise<string> {
  const oldest = (await readParts(store)).at(-1)
  if (oldest === undefined) throw new Error('no index of messages')
  const { before: end } = await rangeOf(store, 'messages')
  const [row] = await store.db.all<{ t: number }>(
    sql`select timestamp as t from messages where id < ${from} order by id desc limit 1`,
  )
  const month = row === undefined ? oldest.month : monthOf(row.t)
  if (month >= oldest.month && Math.min(oldest.before, end) - from < PART) return oldest.name
  const { name, statements } = createPart(store, oldest, { before: from, month })
  await store.atomic(statements)
  return name
}
