import type { Pause } from '../base/pacing/slices.ts'
import { and, eq, sql } from 'drizzle-orm'
import { integer, sqliteTable, text as textColumn } from 'drizzle-orm/sqlite-core'
import { textIndexes } from '../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../db/store.ts'
import type { Ports } from '../base/context.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import type { Range } from './walk.ts'

/**
 * The searchable text of a row, as the triggers of the migration write it to the index. FTS5 stops at a NUL, so a text
 * that contains one begins with `MARK`, which every search also finds.
 */
const TEXTS = {
  messages: 'text',
  nodes: "coalesce(long_name, '') || char(10) || coalesce(short_name, '') || char(10) || printf('!%08x', node_num)",
  audit_log: "coalesce(username, '') || char(10) || action || char(10) || details || char(10) || coalesce(ip, '')",
} as const
export type TextTable = keyof typeof TEXTS

const TEXT_TABLES: readonly TextTable[] = ['messages', 'nodes', 'audit_log']

const MARK = '\u{e000}\u{e001}\u{e002}'

/** Rows of a full slice: a few milliseconds, including the pages merged with it. */
const SLICE = 250
/** One page of the index is merged for this many changed rows, so that the index keeps few parts. */
const ROWS_PER_PAGE = 12
/** Merges per index in one run, in addition to new rows. */
const MERGES = 10

const queries = prepareOnce((db) => ({
  indexedFrom: db
    .select({ id: textIndexes.indexedFrom })
    .from(textIndexes)
    .where(eq(textIndexes.table, sql.placeholder('table')))
    .prepare(),
}))

/** The lowest id in the index of a table. Rows below it are not indexed yet. 1 when the index is complete. */
export async function readIndexedFrom(store: Store, table: TextTable): Promise<number> {
  const row = await queries(store).indexedFrom.get({ table })
  if (row === undefined) throw new Error(`no text index of ${table}`)
  return row.id
}

/**
 * The query to the index that finds all texts containing `part`, and possibly more. Null for fewer than three
 * characters, which the index cannot find.
 */
export function matching(part: string): string | null {
  const characters = [...part]
  if (characters.length < 3) return null
  const last = characters.length - 3
  // Quoted text is not parsed as syntax. Overlapping trigrams would hardly reduce the result, and each costs a look-up
  // for every row.
  const starts = Array.from({ length: Math.ceil(last / 3) }, (_, run) => run * 3)
  const runs = [...starts, last].map((at) => characters.slice(at, at + 3).join(''))
  const known = runs.filter((run) => !run.includes('\0')).map((run) => `"${run.replaceAll('"', '""')}"`)
  return known.length === 0 ? `"${MARK}"` : `(${known.join(' AND ')}) OR "${MARK}"`
}

/** The index of each table. Virtual tables are not in the schema, because backups and migrations are made from it. */
function textRowsOf<Name extends string>(name: Name) {
  return sqliteTable(name, { rowid: integer('rowid'), text: textColumn('text') })
}
const TEXT_ROWS = {
  messages: textRowsOf('messages_text'),
  nodes: textRowsOf('nodes_text'),
  audit_log: textRowsOf('audit_log_text'),
} as const satisfies Record<TextTable, unknown>

/** FTS5 takes its commands as rows, in a column named after the table. */
function commandsOf<Name extends string>(name: Name) {
  return sqliteTable(name, { command: textColumn(name), rank: integer('rank') })
}
const MERGED = {
  messages: commandsOf('messages_text'),
  nodes: commandsOf('nodes_text'),
  audit_log: commandsOf('audit_log_text'),
} as const satisfies Record<TextTable, unknown>

/** Rows that the index returns in one query: at first, and later. */
const FIRST_IDS = 250
const MAX_IDS = 4000

type MatchWalk<Row> = Range & {
  /** Enough rows. */
  readonly limit: number
  /** The matching rows among some ids, a JSON array: at most `limit`, highest id first. */
  keep(ids: string, limit: number): Promise<readonly Row[]>
  /** The same for all rows in the range. */
  read(range: Range, limit: number): Promise<readonly Row[]>
}

/**
 * Searches the rows of a range that the index finds, from the highest id, until there are enough. Other requests run
 * between two queries. Only the range itself gives a lower bound: FTS5 does not use one before it has found something.
 */
export async function walkMatches<Row>(
  { db, batch }: Store,
  table: TextTable,
  match: string,
  { from, before, limit, keep, read }: MatchWalk<Row>,
): Promise<Row[]> {
  const index = sql.raw(`${table}_text`)
  const found: Row[] = []
  let end = before
  // A frequent text occurs in the newest rows, and opening its long lists in the index takes more time than reading
  // these rows. On D1 the additional query would take longer.
  if (batch === undefined) {
    end = Math.max(from, before - FIRST_IDS)
    found.push(...(await read({ from: end, before }, limit)))
  }
  for (let most = FIRST_IDS; found.length < limit; most = Math.min(MAX_IDS, most * 2)) {
    const ids = (
      await db.all<{ id: number }>(sql`select rowid as id from ${index}
        where ${index} match ${match} and rowid < ${end} and rowid >= ${from} order by rowid desc limit ${most}`)
    ).map(({ id }) => id)
    if (ids.length > 0) found.push(...(await keep(JSON.stringify(ids), limit - found.length)))
    if (ids.length < most) break
    end = ids.at(-1) ?? from
    await nextTurn()
  }
  return found
}

/**
 * Indexes rows that an older version or a backup has left, the newest first, and merges the parts that new rows have
 * left in the indexes.
 * Decision: docs/decisions/text-search.md
 */
export async function buildTextIndexes(
  { store, log }: Pick<Ports, 'store' | 'log'>,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<void> {
  for (const table of TEXT_TABLES) {
    const from = await readIndexedFrom(store, table)
    for (let left = from; left > 1;) {
      left = await buildSlice(store, table, left, share())
      if (!(await pause())) return
    }
    if (from > 1) log.info('Texts can be searched by an index', { table })
    for (let n = 0; n < MERGES; n++) {
      await store.atomic([merge(store, table, partOf(SLICE, share()))], 'lazily')
      if (!(await pause())) return
    }
  }
}

/**
 * Merges some parts of an index, if there are enough of them, in proportion to changed rows. Fewer parts are searched
 * faster; and each transaction adds one, until FTS5 merges 64 of a size at once, however long that takes.
 */
function merge({ db }: Store, table: TextTable, rows: number): Statement {
  return db.insert(MERGED[table]).values({ command: 'merge', rank: Math.ceil(rows / ROWS_PER_PAGE) })
}

/** Keeps the index in few parts. Call it after each of many transactions that delete so many indexed rows. */
export async function mergeAfter(store: Store, table: TextTable, rows: number): Promise<void> {
  // D1 serves other requests meanwhile, and there the schedule merges.
  if (store.batch !== undefined || rows === 0) return
  // A merge takes about as long as the deletion before it.
  await nextTurn()
  await store.atomic([merge(store, table, rows)], 'lazily')
}

/** Indexes this share of a slice of rows below `from`. Returns where the next slice continues. */
async function buildSlice(store: Store, table: TextTable, from: number, share: number): Promise<number> {
  const { db } = store
  const name = sql.raw(table)
  const text = sql.raw(TEXTS[table])
  const below = sql`select id from ${name} where id < ${from} order by id desc limit 1 offset ${partOf(SLICE, share) - 1}`
  const lowest = (await db.all<{ id: number }>(below))[0]?.id ?? 1
  // Changes nothing if another instance was faster.
  const isOurTurn = and(eq(textIndexes.table, table), eq(textIndexes.indexedFrom, from))
  await store.atomic(
    [
      db.insert(TEXT_ROWS[table])
        .select(sql`select id, iif(instr(${text}, char(0)) > 0, ${MARK}, '') || ${text} from ${name}
          where id >= ${lowest} and id < ${from} and exists (select 1 from ${textIndexes} where ${isOurTurn})`),
      db.update(textIndexes).set({ indexedFrom: lowest }).where(isOurTurn),
      merge(store, table, partOf(SLICE, share)),
    ],
    'lazily',
  )
  return readIndexedFrom(store, table)
}
