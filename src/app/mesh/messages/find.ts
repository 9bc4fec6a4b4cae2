import { and, desc, eq, gte, lt, type Placeholder, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../../db/contains.ts'
import { messages } from '../../../db/schema.ts'
import { prepareShapes, rawRows, type Store } from '../../../db/store.ts'
import {
  messagesSeenBy,
  ofNodesSeenBy,
  type View,
  visibleMessages,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { matching, readIndexedFrom, walkMatches } from '../../search/text-index.ts'
import { namesOf } from '../../../shared/names.ts'
import { type Range, rangeOf, walkBack } from '../../search/walk.ts'

export type MessageSearch = {
  readonly limit: number
  /**
   * Id of a message: only those that arrived before it.
   * Decision: docs/decisions/short-decisions.md#messages-are-ordered-by-arrival
   */
  readonly before?: number | undefined
  /** Time in milliseconds, inclusive. */
  readonly since?: number | undefined
  /** Time in milliseconds, exclusive. */
  readonly until?: number | undefined
  readonly channel?: number | undefined
  /** Direct messages from and to this node. */
  readonly with?: number | undefined
  /** Messages from this node. */
  readonly from?: number | undefined
  /** Part of the text. */
  readonly q?: string | undefined
  /** Only those whose signature was verified. */
  readonly signed?: true | undefined
  /** The view, if it does not include all messages. */
  readonly visible?: View | undefined
}

/**
 * Up to this number, messages since a time are read and then sorted. For more, walking back from the newest is faster.
 */
const FEW = 5000
/** Messages that one request reads if no index finds a text: half a second on a Raspberry Pi. */
const MAX_READ = 250_000

/** In the wording of the indexes of direct messages. */
const IS_DIRECT = sql.raw('to_node_num <> 4294967295')

/**
 * Ids of matching messages, newest first, at most `limit`, and the id below which to continue; null at the end. If no
 * index finds the text, a page may have fewer or none although more follow.
 */
export async function findMessages(
  store: Store,
  { limit, ...by }: MessageSearch,
): Promise<{ readonly ids: number[]; readonly next: number | null }> {
  // One more than requested shows whether there is a next page.
  const { found, seenFrom, from } = await search(store, by, limit + 1)
  const ids = found.slice(0, limit)
  if (found.length > limit) return { ids, next: ids.at(-1) ?? null }
  return { ids, next: seenFrom > from ? seenFrom : null }
}

type By = Omit<MessageSearch, 'limit'>
type Found = { readonly found: readonly number[]; readonly seenFrom: number; readonly from: number }

async function search(store: Store, by: By, limit: number): Promise<Found> {
  const { from, before } = await rangeOf(store, 'messages', by.before)
  const whole = { from, before }
  const all = (found: readonly number[]): Found => ({ found, seenFrom: from, from })
  if (by.since !== undefined && (await isFew(store, by.since))) return all(await byTime(store, by, whole, limit))
  if (by.with !== undefined) {
    const read = (range: Range, count: number) => byConversation(store, by, range, count)
    const isAlone = [by.since, by.until, by.channel, by.from, by.q, by.signed].every((filter) => filter === undefined)
    return isAlone ? all(await read(whole, limit)) : { ...(await walkBack({ store, ...whole, limit, read })), from }
  }
  const { visible, ...others } = by
  if (visible !== undefined && visible.channels !== 'all' && isOnly('before', others)) {
    return all(await byChannels(store, visible, whole, limit))
  }
  const plain = (range: Range, count: number) => byId(store, by, range, count)
  // Messages of one sender, or of a time long ago, may be far back.
  const most = by.from === undefined && by.until === undefined ? undefined : MAX_READ
  if (by.q === undefined) return { ...(await walkBack({ store, ...whole, limit, most, read: plain })), from }
  const match = matching(by.q)
  const indexedFrom =
    match === null ? before : Math.min(before, Math.max(from, await readIndexedFrom(store, 'messages')))
  const keep = (ids: string, count: number) => byIds(store, by, ids, count)
  const range = { from: indexedFrom, before, limit, keep, read: plain }
  const found = match === null ? [] : await walkMatches(store, 'messages', match, range)
  if (found.length >= limit) return { found, seenFrom: indexedFrom, from }
  const rest = { store, from, before: indexedFrom, limit: limit - found.length, most: MAX_READ, read: plain }
  const older = await walkBack(rest)
  return { found: [...found, ...older.found], seenFrom: older.seenFrom, from }
}

/** Whether no other filter is used. */
function isOnly(name: keyof By, by: By): boolean {
  return Object.entries(by).every(([other, value]) => other === name || value === undefined)
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

/** Searches the messages since a time, if they are few. */
async function byTime(store: Store, { since, ...by }: By, range: Range, limit: number): Ids {
  const where = and(gte(messages.timestamp, since ?? 0), isDirect(by), ...conditions(by), ...within(range))
  const from = sql.raw('messages indexed by messages_timestamp')
  return idsOf(store, sql`select id from ${from} where ${where} order by id desc limit ${limit}`)
}

/** Searches the messages of one conversation: those from a node, and those to it. */
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

/** Searches the newest messages of each channel in the scope, and the newest direct ones. */
async function byChannels(store: Store, view: View, { from, before }: Range, limit: number): Ids {
  const { channels, direct } = view
  const isShown = ofNodesSeenBy(view, messages.fromNodeNum, messages.toNodeNum)
  const newest = (index: string, where: SQL) => sql`select id from ${sql.raw(`messages indexed by ${index}`)}
    where ${where} and ${isShown} and id >= ${from} and id < ${before} order by id desc limit ${limit}`
  const mayBeShown = view.isPublic === true ? sql`not withheld` : sql`true`
  const ofChannel = newest('messages_channel', sql`channel = c.value and not (${IS_DIRECT}) and ${mayBeShown}`)
  const numbers = JSON.stringify(channels === 'all' ? [] : channels.read)
  const ofChannels = sql`select j.value as id from json_each(${numbers}) c,
    json_each((select json_group_array(id) from (${ofChannel}))) j`
  const ofDirect = direct.read ? sql`union all select id from (${newest('messages_direct', IS_DIRECT)})` : sql``
  return idsOf(store, sql`select id from (${ofChannels} ${ofDirect}) order by id desc limit ${limit}`)
}

/** Searches the messages that the text index has found: a JSON array of ids. */
async function byIds(store: Store, by: By, ids: string, limit: number): Ids {
  const where = and(sql`id in (select value from json_each(${ids}))`, ...conditions(by))
  return idsOf(store, sql`select id from messages where ${where} order by id desc limit ${limit}`)
}

const value: (name: string) => Placeholder = sql.placeholder

/** The same as `conditions`, for prepared selects. */
const CONDITIONS = {
  since: sql`+${messages.timestamp} >= ${value('since')}`,
  until: sql`+${messages.timestamp} < ${value('until')}`,
  channel: eq(messages.channel, value('channel')),
  from: sql`+${messages.fromNodeNum} = ${value('sender')}`,
  q: contains(messages.text, value('q')),
  signed: sql`signed`,
  visible: visibleMessages,
} as const satisfies Partial<Record<keyof By, SQL>>
const FILTERS = namesOf(CONDITIONS)

/** A shape is a set of filters. */
const walks = prepareShapes((db, shape) => {
  const asked = shape.split(' ')
  return db
    .select({ id: messages.id })
    .from(messages)
    .where(
      and(
        ...FILTERS.filter((name) => asked.includes(name)).map((name) => CONDITIONS[name]),
        gte(messages.id, value('lowest')),
        lt(messages.id, value('end')),
      ),
    )
    .orderBy(desc(messages.id))
    .limit(value('limit'))
    .prepare()
})

/** Searches all messages of the range. */
async function byId(store: Store, { visible, from: sender, ...by }: By, range: Range, limit: number): Ids {
  const asked = { ...by, visible, from: sender }
  const shape = FILTERS.filter((name) => asked[name] !== undefined).join(' ')
  const seen = visible === undefined ? {} : visibleValues(visible)
  const values = { ...by, sender, ...seen, lowest: range.from, end: range.before, limit }
  return (await rawRows<readonly [id: number]>(walks(store, shape), values)).map(([id]) => id)
}

function within({ from, before }: Range): SQL[] {
  return [gte(messages.id, from), lt(messages.id, before)]
}

function isDirect({ with: nodeNum }: By): SQL | undefined {
  if (nodeNum === undefined) return undefined
  return and(IS_DIRECT, sql`(from_node_num = ${nodeNum} or to_node_num = ${nodeNum})`)
}

/** All filters except `before` and `with`. */
function conditions({ since, until, channel, from, q, signed, visible }: By): (SQL | undefined)[] {
  return [
    // Without an index, because there are only few rows.
    since === undefined ? undefined : sql`+${messages.timestamp} >= ${since}`,
    until === undefined ? undefined : sql`+${messages.timestamp} < ${until}`,
    channel === undefined ? undefined : eq(messages.channel, channel),
    from === undefined ? undefined : sql`+${messages.fromNodeNum} = ${from}`,
    q === undefined ? undefined : contains(messages.text, q),
    signed === undefined ? undefined : sql`signed`,
    visible === undefined ? undefined : messagesSeenBy(visible),
  ]
}
