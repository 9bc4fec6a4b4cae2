import { desc, eq, sql } from 'drizzle-orm'
import { textIndexes, textParts } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { type Range, walkBack } from './walk.ts'

export type TextTable = 'messages' | 'nodes' | 'audit_log'

/**
 * FTS5 stops at a NUL, so a text that contains one begins with this, which every search also finds. So does every
 * `MARKED`th message.
 */
export const MARK = '\u{e000}\u{e001}\u{e002}'
const MARKED_ROWS = `"${MARK}"`

const queries = prepareOnce((db) => ({
  indexedFrom: db
    .select({ id: textIndexes.indexedFrom })
    .from(textIndexes)
    .where(eq(textIndexes.table, sql.placeholder('table')))
    .prepare(),
  names: db
    .select({ name: textParts.name, before: textParts.before })
    .from(textParts)
    .orderBy(desc(textParts.before))
    .prepare(),
  parts: db
    .select({
      name: textParts.name,
      before: textParts.before,
      month: textParts.month,
      // Names that were used, also by their tables in which FTS5 keeps a part.
      last: sql<number>`(select max(cast(substr(name, 15) as integer)) from sqlite_master where name glob 'messages_text*')`,
    })
    .from(textParts)
    .orderBy(desc(textParts.before))
    .prepare(),
}))

/** The lowest id in the index of a table. Rows below it are not indexed yet. At most 1 when the index is complete. */
export async function readIndexedFrom(store: Store, table: TextTable): Promise<number> {
  const row = await queries(store).indexedFrom.get({ table })
  if (row === undefined) throw new Error(`no text index of ${table}`)
  return row.id
}

/** The parts of the index of messages, the newest first. */
export async function readParts(store: Store) {
  return queries(store).parts.all()
}

/** More would hardly reduce the result, and each is looked up. */
const MAX_RUNS = 20

/**
 * The query to the index that finds all texts containing each of these parts, and possibly more. Null if none has three
 * characters, which the index cannot find. The marked rows keep FTS5 from reading on until a text has all of it.
 */
export function matching(...parts: readonly string[]): string | null {
  const runs = [...new Set(parts.flatMap(runsOf))]
  if (runs.length === 0) return null
  const known = runs.filter((run) => !run.includes('\0')).slice(0, MAX_RUNS)
  if (known.length === 0) return MARKED_ROWS
  return known.map((run) => `("${run.replaceAll('"', '""')}" OR ${MARKED_ROWS})`).join(' AND ')
}

/**
 * Runs of three characters. Overlapping ones would hardly reduce the result, and each costs a look-up for every row.
 * Quoted text is not parsed as syntax.
 */
function runsOf(part: string): string[] {
  const characters = [...part]
  const last = characters.length - 3
  if (last < 0) return []
  const starts = Array.from({ length: Math.ceil(last / 3) }, (_, run) => run * 3)
  return [...starts, last].map((at) => characters.slice(at, at + 3).join(''))
}

/**
 * Rows that one query to the index returns at most, because all of them are read afterwards. Nearly all that it finds
 * match, so the first query returns few more than the page has.
 */
const MAX_IDS = 500
const SPARE_IDS = 32
/** Ids that one query to the index covers at least: beginning one takes longer than reading the lists of so many. */
const LEAST_MATCHED = 65_536

/** The matching rows among some ids, a JSON array: at most `limit`, highest id first. */
type Keep<Row> = (ids: string, limit: number) => Promise<readonly Row[]>

type Search<Row> = Parameters<typeof walkBack<Row>>[0] & { readonly store: Store; readonly keep: Keep<Row> }

/** Like `walkBack`, of the rows that the index finds. Those that it does not have are read; all, if `match` is null. */
export async function walkMatches<Row>(table: TextTable, match: string | null, { keep, ...walk }: Search<Row>) {
  const { store, from, before, limit } = walk
  const first = match === null ? before : await readIndexedFrom(store, table)
  const indexedFrom = Math.min(before, Math.max(from, first))
  const newer =
    match === null
      ? { found: [], seenFrom: before }
      : await walkBack({
          ...walk,
          from: indexedFrom,
          least: LEAST_MATCHED,
          read: await matchReader(store, table, match, keep),
        })
  if (newer.found.length >= limit || newer.seenFrom > indexedFrom) return newer
  const { found, seenFrom } = await walkBack({ ...walk, before: indexedFrom, limit: limit - newer.found.length })
  return { found: [...newer.found, ...found], seenFrom }
}

/** What `walkBack` reads, from the index. */
async function matchReader<Row>(store: Store, table: TextTable, match: string, keep: Keep<Row>) {
  const parts = table === 'messages' ? await queries(store).names.all() : []
  let spare = SPARE_IDS
  return async ({ from, before }: Range, limit: number, reached: (id: number) => void): Promise<readonly Row[]> => {
    const at = parts.findLastIndex((part) => part.before >= before)
    const lowest = Math.max(from, parts[at + 1]?.before ?? from)
    const index = sql.raw(parts[at]?.name ?? `${table}_text`)
    const asked = Math.min(MAX_IDS, limit + spare)
    spare = MAX_IDS
    // Without the cast the bounds are numbers with a fraction to FTS5, which it does not use.
    const ids = (
      await store.db.all<{ id: number }>(sql`select rowid as id from ${index}
        where ${index} match ${match} and rowid < cast(${before} as integer) and rowid >= cast(${lowest} as integer)
        order by rowid desc limit ${asked}`)
    ).map(({ id }) => id)
    reached(ids.length < asked ? lowest : (ids.at(-1) ?? lowest))
    return ids.length === 0 ? [] : keep(JSON.stringify(ids), limit)
  }
}
