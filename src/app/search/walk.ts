import { sql, type SQL } from 'drizzle-orm'
import { FIRST_OF_PAGES, FIRST_PACKET, LAST_OF_PAGES, LAST_PACKET } from '../../db/packet-log.ts'
import { prepareShapes, type Store } from '../../db/store.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'

/** Ids from `from` up to, but not including, `before`. */
export type Range = { readonly from: number; readonly before: number }

/** How long one query of a search should hold the event loop, in milliseconds. */
const AIM_MS = 6
/**
 * The number of ids that each query covers at least, and the first one exactly. On D1 each query is a round trip, so
 * there should be few queries. Elsewhere the event loop waits while the rows are read from disk.
 */
const leastIds = ({ batch }: Pick<Store, 'batch'>) => (batch === undefined ? 500 : 10_000)
/**
 * The next query covers at most this many times as many ids, because its rows may be on disk and the previous ones in
 * memory.
 */
const MAX_GROWTH = 2

/** How much one request searches before its page ends, at the least in queries and then in milliseconds of them. */
const LEAST_QUERIES = 20
const BUDGET_MS = 100

type Walk<Row> = Range & {
  readonly store: Pick<Store, 'batch'>
  /** How many rows are enough. */
  readonly limit: number
  /** The maximum number of ids to cover. */
  readonly most?: number | undefined
  /** The number of ids that each query covers at least, if it is not the usual one. */
  readonly least?: number
  /** Ends after a bounded amount of work; absent: covers all. Share one between the walks of a request. */
  readonly budget?: Budget | undefined
  /** At most `limit` rows in the range, the highest id first. May tell `reached` that it covered only this id and above. */
  read(range: Range, limit: number, reached: (id: number) => void): Promise<readonly Row[]>
}

/** Takes the milliseconds of a query; returns whether another one fits. */
export type Budget = (tookMs: number) => boolean

/** `signal`: of a request whose reader may go away. */
export function createBudget(signal: AbortSignal | undefined): Budget {
  let queries = 0
  let spentMs = 0
  return (tookMs) => {
    queries++
    spentMs += tookMs
    return signal?.aborted !== true && (queries < LEAST_QUERIES || spentMs < BUDGET_MS)
  }
}

/**
 * Searches a range from its highest id until there are enough rows. Other requests run between two queries, and each
 * query covers as many ids as take a few milliseconds. Returns the rows found, and the id below which it did not
 * search: `from` when it has covered all.
 */
export async function walkBack<Row>({
  store,
  from,
  before,
  limit,
  most = Number.POSITIVE_INFINITY,
  least = leastIds(store),
  budget,
  read,
}: Walk<Row>): Promise<{ readonly found: Row[]; readonly seenFrom: number }> {
  const found: Row[] = []
  const lowest = Math.max(from, before - most)
  let ids = least
  let end = before
  while (end > lowest && found.length < limit) {
    let begin = Math.max(lowest, end - ids)
    const begun = performance.now()
    found.push(...(await read({ from: begin, before: end }, limit - found.length, (id) => (begin = id))))
    const tookMs = performance.now() - begun
    ids = Math.max(least, Math.floor((ids * AIM_MS) / Math.max(tookMs, AIM_MS / MAX_GROWTH)))
    end = begin
    if (budget?.(tookMs) === false) break
    if (end > lowest && found.length < limit) await nextTurn()
  }
  return { found, seenFrom: end }
}

const ENDS: ReadonlyMap<string, readonly [SQL<number | null>, SQL<number | null>]> = new Map([
  ['packet_log', [FIRST_PACKET, LAST_PACKET]],
  ['packet_pages', [FIRST_OF_PAGES, LAST_OF_PAGES]],
])

// Two sub-selects, because one with both minimum and maximum would read every row.
const ranges = prepareShapes((db, table) => {
  const end = (name: 'min' | 'max') => sql<number | null>`(select ${sql.raw(name)}(id) from ${sql.raw(table)})`
  const [first, last] = ENDS.get(table) ?? [end('min'), end('max')]
  return db
    .select({ first: first.as('first'), last: last.as('last') })
    .from(sql`(select 1)`)
    .prepare()
})

/** The range of ids of a table, or of both forms of the packet log, below `before` if that is given; none for an empty table. */
export async function rangeOf(
  store: Store,
  table: 'messages' | 'packets' | 'packet_pages' | 'packet_log' | 'traceroutes' | 'audit_log',
  before = Number.MAX_SAFE_INTEGER,
): Promise<Range> {
  const row = await ranges(store, table).get()
  const from = row?.first ?? 1
  return { from, before: Math.max(from, Math.min(before, (row?.last ?? 0) + 1)) }
}
