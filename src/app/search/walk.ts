import { sql } from 'drizzle-orm'
import type { Store } from '../../db/store.ts'
import { nextTurn } from '../http/limits/next-turn.ts'

/** Ids from `from` on and below `before`. */
export type Range = { readonly from: number; readonly before: number }

/** How long one query of a search should hold the event loop, in milliseconds. */
const AIM_MS = 6
/** Ids that the first query looks through, and each one at least: so D1, which is slow to answer, is asked seldom. */
const LEAST_IDS = 10_000
/** The next query looks through at most so many times as many ids. */
const MOST_GROWTH = 8

type Walk<Row> = Range & {
  /** Rows that are enough. */
  readonly limit: number
  /** Ids to look through at most. */
  readonly most?: number | undefined
  /** At most `limit` rows in the range, the highest id first. */
  read(range: Range, limit: number): Promise<readonly Row[]>
}

/**
 * Looks through a range from its highest id on until there are enough rows. Other requests run between two queries, and
 * each query looks through as many ids as take some milliseconds. Answers what it found, and the id below which it did
 * not look: `from` when it has seen all.
 */
export async function walkBack<Row>({
  from,
  before,
  limit,
  most = Number.POSITIVE_INFINITY,
  read,
}: Walk<Row>): Promise<{ readonly found: Row[]; readonly seenFrom: number }> {
  const found: Row[] = []
  const lowest = Math.max(from, before - most)
  let ids = LEAST_IDS
  let end = before
  while (end > lowest && found.length < limit) {
    const begin = Math.max(lowest, end - ids)
    const begun = performance.now()
    found.push(...(await read({ from: begin, before: end }, limit - found.length)))
    const tookMs = Math.max(performance.now() - begun, AIM_MS / MOST_GROWTH)
    ids = Math.max(LEAST_IDS, Math.floor((ids * AIM_MS) / tookMs))
    end = begin
    if (end > lowest && found.length < limit) await nextTurn()
  }
  return { found, seenFrom: end }
}

/** The ids of a table from its lowest one on, below `before` if that is given; none of a table without rows. */
export async function rangeOf(
  { db }: Store,
  table: 'messages' | 'packets' | 'audit_log',
  before = Number.MAX_SAFE_INTEGER,
): Promise<Range> {
  const name = sql.raw(table)
  // Two sub-selects: one with both would read every row.
  const [row] = await db.all<{ first: number | null; last: number | null }>(
    sql`select (select min(id) from ${name}) as first, (select max(id) from ${name}) as last`,
  )
  const from = row?.first ?? 1
  return { from, before: Math.max(from, Math.min(before, (row?.last ?? 0) + 1)) }
}
