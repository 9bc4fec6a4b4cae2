import { and, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../../db/contains.ts'
import { messages } from '../../../db/schema.ts'
import { filtersOf } from '../../../db/filters.ts'
import { prepareShapes, rawRows, type Store } from '../../../db/store.ts'
import {
  ofNodesSeenBy,
  type View,
  visibleMessages,
  visibleReactions,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { matching, walkMatches } from '../../search/text-index.ts'
import { namesOf } from '../../../shared/names.ts'
import type { MessageTrait } from '../../../shared/mesh/message-traits.ts'
import { createBudget, type Range, rangeOf, walkBack } from '../../search/walk.ts'

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
  /** Only direct messages. */
  readonly direct?: true | undefined
  /** Direct messages from and to this node. */
  readonly with?: number | undefined
  /** Messages from this node. */
  readonly from?: number | undefined
  /** Part of the text. */
  readonly q?: string | undefined
  /** Further parts of the text, all of them. */
  readonly also?: readonly string[] | undefined
  /** None of these is a part of the text. */
  readonly without?: readonly string[] | undefined
  readonly has?: readonly MessageTrait[] | undefined
  /** Only those whose signature was verified. */
  readonly signed?: true | undefined
  /** The view, if it does not include all messages. */
  readonly visible?: View | undefined
  /** Of the request: the search ends when its reader has gone. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Up to this number, messages since a time or of a sender are read and then sorted. For more, walking back from the
 * newest is faster.
 */
const FEW = 2000
/** The first query reads so many of these, because each may be compared with all parts of a search. */
const FEW_AT_ONCE = 250

/** In the wording of the indexes of direct messages. */
const IS_DIRECT = sql.raw('to_node_num <> 4294967295')

/**
 * Ids of matching messages, newest first, at most `limit`, and the id below which to continue; null at the end. A page
 * ends after a bounded amount of work, so it may have fewer or none although more follow.
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

async function search(store: Store, { signal, ...by }: By, limit: number): Promise<Found> {
  const { from, before } = await rangeOf(store, 'messages', by.before)
  const { visible, before: _before, ...filters } = by
  const all = (found: readonly number[]): Found => ({ found, seenFrom: from, from })
  const readAs = (kind: Kind) => (range: Range, count: number) =>
    readIds(store, kind, by, { lowest: range.from, end: range.before, limit: count })
  const keep = (ids: string, count: number) => readIds(store, 'ids', by, { ids, limit: count })
  const few =
    (await findFew(store, 'messages_timestamp', 'timestamp >=', by.since)) ??
    (await findFew(store, 'messages_from_packet', 'from_node_num =', by.from))
  if (few !== null) {
    const rows = few.filter((id) => id < before).toSorted((a, b) => a - b)
    const read = (at: Range, count: number) => keep(JSON.stringify(rows.slice(at.from, at.before)), count)
    return all((await walkBack({ store, from: 0, before: rows.length, limit, least: FEW_AT_ONCE, read })).found)
  }
  const isOnly = (only?: string) =>
    Object.entries(filters).every(([name, asked]) => asked === undefined || name === only)
  if (by.with !== undefined && isOnly('with')) return all(await readAs('with')({ from, before }, limit))
  if (visible !== undefined && visible.channels !== 'all' && isOnly()) {
    return all(await byChannels(store, visible, { from, before }, limit))
  }
  const kind = by.with !== undefined ? 'with' : by.has?.includes('error') === true ? 'failed' : 'id'
  const match = by.with === undefined ? matching(...[by.q, by.also].flat().filter((part) => part !== undefined)) : null
  const walk = { store, from, before, limit, budget: createBudget(signal), keep, read: readAs(kind) }
  return { ...(await walkMatches('messages', match, walk)), from }
}

/** The ids of messages that an index finds, if they are few; null: they are not, or not asked for. */
async function findFew(store: Store, index: string, where: string, asked: number | undefined) {
  if (asked === undefined) return null
  const rows = await store.db.all<{ id: number }>(
    sql`select id from messages indexed by ${sql.raw(`${index} where ${where}`)} ${asked} limit ${FEW + 1}`,
  )
  return rows.length > FEW ? null : rows.map(({ id }) => id)
}

type Ids = Promise<readonly number[]>

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
  const query = sql`select id from (${ofChannels} ${ofDirect}) order by id desc limit ${limit}`
  return (await store.db.all<{ id: number }>(query)).map(({ id }) => id)
}

const value = sql.placeholder
const given = (name: string, condition: SQL) => sql`exists (select 1 from json_each(${value(name)}) where ${condition})`
const IS_IN = contains(messages.text, sql`value`)

/** A reaction is a message too, `r`. Anybody can send many to one packet id, so only some of them are looked at. */
const reaction = (isSeen: SQL) =>
  sql`exists (select 1 from (select * from ${messages} r where r.emoji and r.reply_id = ${messages.packetId} limit 50) r
    where ${isSeen})`

/** Each filter except `before`, `with` and `from`. Without an index, because there are only few rows. */
const filters = filtersOf({
  since: sql`+${messages.timestamp} >= ${value('since')}`,
  until: sql`+${messages.timestamp} < ${value('until')}`,
  channel: sql`${messages.channel} = ${value('channel')}`,
  direct: IS_DIRECT,
  sender: sql`+${messages.fromNodeNum} = ${value('sender')}`,
  q: contains(messages.text, value('q')),
  also: sql`not ${given('also', sql`not ${IS_IN}`)}`,
  without: sql`not ${given('without', IS_IN)}`,
  // Latitude and longitude with three decimals or more. D1 refuses patterns of more than 50 bytes.
  position: sql`${messages.text} glob '*[0-9].[0-9][0-9][0-9]*,*[0-9].[0-9][0-9][0-9]*'`,
  reaction: reaction(sql`true`),
  reactionSeen: reaction(visibleReactions),
  error: sql`routing_error is not null`,
  signed: sql`signed`,
  visible: visibleMessages,
})

const WITHIN = sql`messages.id >= ${value('lowest')} and messages.id < ${value('end')}`
/** How messages are read: the index, and the rows in it. */
const KINDS = {
  id: ['', WITHIN],
  failed: ['indexed by messages_failed', WITHIN],
  ids: [
    '',
    sql`id in (select value from json_each(${value('ids')})) and (${value('with')} is null
      or to_node_num <> 4294967295 and ${value('with')} in (from_node_num, to_node_num))`,
  ],
  with: ['', WITHIN],
} as const satisfies Record<string, readonly [string, SQL]>
type Kind = keyof typeof KINDS
const ALL_KINDS = namesOf(KINDS)

/** A shape is a kind and a set of filters. */
const reads = prepareShapes((db, shape) => {
  const kind = ALL_KINDS.find((name) => name === shape.split(' ')[0]) ?? 'id'
  const [index, rows] = KINDS[kind]
  const where = and(rows, filters.whereOf(shape))
  const newest = sql`order by id desc limit ${value('limit')}`
  // One conversation: the messages from a node, and those to it.
  const half = (column: string) => sql`select * from (select id from ${sql.raw(`messages
    indexed by messages_direct_${column} where to_node_num <> 4294967295 and ${column}_node_num`)} = ${value('with')}
    and ${where} ${newest})`
  const from = sql`${sql.raw(`messages ${index}`)} where ${where} ${newest}`
  return db
    .select({ id: sql<number>`id` })
    .from(kind === 'with' ? sql`(${half('from')} union ${half('to')} ${newest})` : from)
    .prepare()
})

type Where = { readonly limit: number } & ({ readonly ids: string } | { readonly lowest: number; readonly end: number })

/** The newest of the messages of this kind that fulfil all filters. */
async function readIds(store: Store, kind: Kind, by: By, where: Where): Ids {
  const { visible, from: sender, has = [], ...others } = by
  const isSeen = visible === undefined ? 'reaction' : 'reactionSeen'
  const traits = Object.fromEntries(has.map((trait) => [trait === 'reaction' ? isSeen : trait, true]))
  const asked: Partial<Record<string, unknown>> = { ...others, ...traits, sender, visible }
  const shape = `${kind} ${filters.shapeOf(asked)}`
  const rows = await rawRows<readonly [id: number]>(reads(store, shape), {
    ...others,
    ...(visible !== undefined && visibleValues(visible)),
    ...where,
    sender,
    with: by.with ?? null,
    also: JSON.stringify(by.also),
    without: JSON.stringify(by.without),
  })
  return rows.map(([id]) => id)
}
