import { and, eq, gte, lt, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../../db/contains.ts'
import { messages } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { matching, readIndexedFrom } from '../../search/text-index.ts'
import { type Range, walkBack } from '../../search/walk.ts'

export type MessageSearch = {
  readonly limit: number
  /** Id of a message: only those that arrived before it. */
  readonly before?: number | undefined
  /** Time in milliseconds, inclusive. */
  readonly since?: number | undefined
  readonly channel?: number | undefined
  /** Direct messages from and to this node. */
  readonly with?: number | undefined
  /** Part of the text. */
  readonly q?: string | undefined
  /** Only those whose signature was verified. */
  readonly signed?: true | undefined
}

/** So few messages since a time are read by that, and put in order; more are met soon on the way from the newest. */
const FEW = 5000
/** Messages that one request reads where no index finds a text: half a second of a Raspberry Pi. */
const MOST_READ = 250_000

/** As SQLite knows the indexes of direct messages by. */
const IS_DIRECT = sql.raw('to_node_num <> 4294967295')

/**
 * Ids of the messages that match, the newest first, at most `limit`, and below which id to go on: null when there are no
 * more. Where no index finds the text there may be fewer, or none, and more further on.
 */
export async function findMessages(
  store: Store,
  { limit, ...by }: MessageSearch,
): Promise<{ readonly ids: number[]; readonly next: number | null }> {
  // One more than asked for tells whether there is a next page.
  const { found, seenFrom, from } = await search(store, by, limit + 1)
  const ids = found.slice(0, limit)
  if (found.length > limit) return { ids, next: ids.at(-1) ?? null }
  return { ids, next: seenFrom > from ? seenFrom : null }
}

type By = Omit<MessageSearch, 'limit'>
type Found = { readonly found: readonly number[]; readonly seenFrom: number; readonly from: number }

async function search(store: Store, by: By, limit: number): Promise<Found> {
  const { from, before } = await boundsOf(store, by.before)
  const whole = { from, before }
  const all = (found: readonly number[]): Found => ({ found, seenFrom: from, from })
  if (by.since !== undefined && (await isFew(store, by.since))) return all(await byTime(store, by, whole, limit))
  if (by.with !== undefined) {
    const read = (range: Range, count: number) => byConversation(store, by, range, count)
    const isAlone = [by.since, by.channel, by.q, by.signed].every((filter) => filter === undefined)
    return isAlone ? all(await read(whole, limit)) : { ...(await walkBack({ ...whole, limit, read })), from }
  }
  const plain = (range: Range, count: number) => byId(store, by, range, count)
  if (by.q === undefined) return { ...(await walkBack({ ...whole, limit, read: plain })), from }
  const match = matching(by.q)
  const indexedFrom =
    match === null ? before : Math.min(before, Math.max(from, await readIndexedFrom(store, 'messages')))
  const indexed = (range: Range, count: number) => byText(store, by, match ?? '', range, count)
  const { found, seenFrom } = await walkBack({ from: indexedFrom, before, limit, read: indexed })
  if (found.length >= limit || seenFrom > indexedFrom) return { found, seenFrom, from }
  const rest = { from, before: indexedFrom, limit: limit - found.length, most: MOST_READ, read: plain }
  const older = await walkBack(rest)
  return { found: [...found, ...older.found], seenFrom: older.seenFrom, from }
}

async function boundsOf({ db }: Store, before: number | undefined): Promise<Range> {
  // Two sub-selects: one with both would read every row.
  const [row] = await db.all<{ first: number | null; last: number | null }>(
    sql`select (select min(id) from messages) as first, (select max(id) from messages) as last`,
  )
  const from = row?.first ?? 1
  return { from, before: Math.max(from, Math.min(before ?? Number.MAX_SAFE_INTEGER, (row?.last ?? 0) + 1)) }
}

async function isFew({ db }: Store, since: number): Promise<boolean> {
  const first = sql`select 1 from messages indexed by messages_timestamp where timestamp >= ${since} limit ${FEW + 1}`
  const [row] = await db.all<{ n: number }>(sql`select count(*) as n from (${first})`)
  return row !== undefined && row.n <= FEW
}

type Ids = Promise<readonly number[]>

async function idsOf({ db }: Store, query: SQL): Ids {
  return (await db.all<{ id: number }>(query)).map(({ id }) => id)
}

/** Through the messages since a time, of which there are few. */
async function byTime(store: Store, { since, ...by }: By, range: Range, limit: number): Ids {
  const where = and(gte(messages.timestamp, since ?? 0), isDirect(by), ...conditions(by), ...within(range))
  const from = sql.raw('messages indexed by messages_timestamp')
  return idsOf(store, sql`select id from ${from} where ${where} order by id desc limit ${limit}`)
}

/** Through the messages of one conversation: those that a node sent, and those that it was sent. */
async function byConversation(store: Store, by: By, range: Range, limit: number): Ids {
  const half = (index: string, column: string) => {
    const where = and(IS_DIRECT, sql`${sql.raw(column)} = ${by.with}`, ...conditions(by), ...within(range))
    return sql`select * from (select id from ${sql.raw(`messages indexed by ${index}`)} where ${where}
      order by id desc limit ${limit})`
  }
  return idsOf(
    store,
    sql`${half('messages_direct_from', 'from_node_num')} union ${half('messages_direct_to', 'to_node_num')}
      order by id desc limit ${limit}`,
  )
}

/** Through the messages in whose text the index finds what `match` asks for. */
async function byText(store: Store, by: By, match: string, { from, before }: Range, limit: number): Ids {
  const where = and(
    sql`messages_text match ${match} and messages_text.rowid >= ${from} and messages_text.rowid < ${before}`,
    ...conditions(by),
  )
  return idsOf(
    store,
    sql`select messages.id from messages_text cross join messages on messages.id = messages_text.rowid
      where ${where} order by messages_text.rowid desc limit ${limit}`,
  )
}

/** Through all messages of the range. */
async function byId(store: Store, by: By, range: Range, limit: number): Ids {
  const where = and(...conditions(by), ...within(range))
  return idsOf(store, sql`select id from messages where ${where} order by id desc limit ${limit}`)
}

function within({ from, before }: Range): SQL[] {
  return [gte(messages.id, from), lt(messages.id, before)]
}

function isDirect({ with: nodeNum }: By): SQL | undefined {
  if (nodeNum === undefined) return undefined
  return and(IS_DIRECT, sql`(from_node_num = ${nodeNum} or to_node_num = ${nodeNum})`)
}

/** All but `before` and `with`. */
function conditions({ since, channel, q, signed }: By): (SQL | undefined)[] {
  return [
    // No index: the rows at hand are few.
    since === undefined ? undefined : sql`+${messages.timestamp} >= ${since}`,
    channel === undefined ? undefined : eq(messages.channel, channel),
    q === undefined ? undefined : contains(messages.text, q),
    signed === undefined ? undefined : sql`signed`,
  ]
}
