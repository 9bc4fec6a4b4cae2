import { desc, eq, getTableColumns, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { messages } from '../../../db/schema.ts'
import { filtersOf } from '../../../db/filters.ts'
import { prepareShapes, rawRows, type Store, type Stored } from '../../../db/store.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Ports } from '../../base/context.ts'
import { type Body, bodyOf, stateTag } from '../../http/compression.ts'
import { keepBodies, readRevision } from '../nodes/list/body-cache.ts'
import {
  seesEverything,
  type View,
  viewKey,
  viewTag,
  visibleMessages,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { DELIVERY_STATES, DIRECTIONS } from '../../../shared/mesh/delivery-states.ts'
import { KEY_DOUBTS } from '../../../shared/mesh/packets.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { findMessages, type MessageSearch } from './find.ts'

export const MAX_MESSAGES = 1000

export const messageSchema = z
  .object({
    id: z.int(),
    packetId: z.int().describe('Unique for one sender; 0: none'),
    fromNodeNum: nodeNumField,
    fromNodeId: nodeIdField,
    toNodeNum: nodeNumField.describe('4294967295: broadcast'),
    toNodeId: nodeIdField,
    channel: z.int().describe('Number as in GET /api/channels; meaningless if pkiEncrypted'),
    text: z.string().meta({ examples: ['Is anybody on the hill?'] }),
    replyId: z.int().nullable().describe('The packetId this answers'),
    emoji: z.boolean().describe('The text is a reaction to replyId'),
    timestamp: timeField,
    rxSnr: z.number().nullable().describe('dB, of the last transmitter'),
    rxRssi: z.int().nullable().describe('dBm, of the last transmitter'),
    hopsAway: z.int().nullable().describe('The fewest hops of its receptions'),
    viaMqtt: z.boolean(),
    pkiEncrypted: z.boolean().describe('Encrypted for one node. It shows who sent it only if keyDoubt is null'),
    keyDoubt: z
      .enum(KEY_DOUBTS)
      .nullable()
      .describe(
        'Why the encryption does not show who sent it. `other`: it was opened with another key than the one that was in use for the sender when it arrived, an earlier or a refused one. `unproven`: a collector says so of a message to a radio that is not its own',
      ),
    signed: z
      .boolean()
      .describe(
        "The sender's signature was verified (firmware 2.8). It covers the sender, packetId and text of a broadcast: not the channel, replyId or emoji",
      ),
    conflicting: z
      .boolean()
      .describe('Copies of it disagree: see `differs` of its receptions. One of them was changed on its way'),
    direction: z.enum(DIRECTIONS),
    deliveryState: z.enum(DELIVERY_STATES).nullable(),
    routingError: z.string().nullable(),
    notice: z.string().optional().describe("Text of the sending radio's notification about it"),
    sentBy: z
      .string()
      .nullable()
      .describe(
        'Username of the sender, automation:<name>, or downlink:<name> for a user of the service that this one delivers to; null for received messages',
      ),
    radio: z
      .string()
      .nullable()
      .describe('Name of the radio through which this service sends it; null if this service does not send it'),
  })
  .meta({ id: 'Message', description: 'A text of the mesh, received or sent' })
export type Message = z.infer<typeof messageSchema>

export const messagePageSchema = z
  .object({
    messages: z.array(messageSchema),
    nextBefore: z
      .int()
      .nullable()
      .describe(
        '`before` of the next page; null: this is the last one. With `q`, a page may have fewer messages than `limit` although the search has not finished: continue while this is not null',
      ),
  })
  .meta({ id: 'MessagePage' })

const { firstReception: _ofReceptions, ...shown } = getTableColumns(messages)

/** The columns for `publicMessage`. A join would let SQLite begin at the sources and sort. */
export const messageColumns = {
  ...shown,
  radio: sql<string | null>`iif(${messages.deliveryState} is null, null,
    (select name from sources where sources.id = ${messages.sourceId}))`,
}

type MessageRow = typeof messages.$inferSelect
type Field<K extends keyof MessageRow> = Stored<MessageRow[K]>
/** A row of `messageColumns` as it is stored. */
export type RawMessage = readonly [
  id: number,
  sourceId: number | null,
  packetId: number,
  fromNodeNum: number,
  toNodeNum: number,
  channel: number,
  text: string,
  replyId: number | null,
  emoji: Field<'emoji'>,
  timestamp: number,
  rxSnr: number | null,
  rxRssi: number | null,
  hopsAway: number | null,
  viaMqtt: Field<'viaMqtt'>,
  pkiEncrypted: Field<'pkiEncrypted'>,
  signed: Field<'signed'>,
  direction: Field<'direction'>,
  deliveryState: Field<'deliveryState'>,
  routingError: string | null,
  notice: string | null,
  sentBy: string | null,
  conflicting: Field<'conflicting'>,
  withheld: Field<'withheld'>,
  keyDoubt: MessageRow['keyDoubt'],
  heard: Field<'heard'>,
  radio: string | null,
]

/** Each filter for which an index has the rows in order, as SQL; the others need a search. */
const filters = filtersOf({
  before: lt(messages.id, sql.placeholder('before')),
  channel: eq(messages.channel, sql.placeholder('channel')),
  signed: sql`signed`,
  visible: visibleMessages,
  ids: sql`${messages.id} in (select value from json_each(${sql.placeholder('ids')}))`,
})

/** A query for each set of filters. */
const pages = prepareShapes((db, shape) =>
  db
    .select(messageColumns)
    .from(messages)
    .where(filters.whereOf(shape))
    .orderBy(desc(messages.id))
    .limit(sql.placeholder('limit'))
    .prepare(),
)

/** `isWaiting`: something in it waits for a collector. */
type Page = Body & { readonly isWaiting: boolean }

const newest = keepBodies<Page>()

/** Whether a list in JSON has something that waits for a collector. Nobody can write that into a text: it has quotes. */
export function mentionsWaiting(json: string): boolean {
  return /"(?:deliveryState|state)":"waiting"/.test(json)
}

/** The first page without filters, which many clients request again and again. */
export async function newestMessages(
  { store, config }: Pick<Ports, 'store' | 'config'>,
  limit: number,
  view: View,
): Promise<Page> {
  const revision = await readRevision(store, 'messages')
  const make = async () => {
    const json = await listMessages(store, { limit }, view)
    const body = bodyOf(json, stateTag(config, `messages ${revision} ${limit} ${viewTag(view)}`))
    return { ...body, isWaiting: mentionsWaiting(json) }
  }
  return newest(store, revision, `${limit} ${viewKey(view)}`, make)
}

/** A page as JSON, newest first, as far as the viewer may see it. */
export async function listMessages(store: Store, asked: MessageSearch, view: View): Promise<string> {
  const { limit } = asked
  const search = seesEverything(view) ? asked : { ...asked, visible: view }
  if (needsSearch(search)) {
    const { ids, next } = await findMessages(store, search)
    const rows = await rawRows<RawMessage>(pages(store, 'ids'), { ids: JSON.stringify(ids), limit })
    return pageOf(rows, next)
  }
  const shape = filters.shapeOf(search)
  // One more than requested, which shows whether there is a next page.
  const values = { ...search, ...visibleValues(view), limit: limit + 1 }
  const rows = await rawRows<RawMessage>(pages(store, shape), values)
  const shown = rows.slice(0, limit)
  return pageOf(shown, rows.length > limit ? (shown.at(-1)?.[0] ?? null) : null)
}

/** The filters that `pages` has. */
const PAGED: readonly string[] = ['limit', 'signal', ...filters.names]

function needsSearch({ visible, ...asked }: MessageSearch): boolean {
  const isFiltered = Object.entries(asked).some(([name, given]) => given !== undefined && !PAGED.includes(name))
  const { channel, signed } = asked
  // The newest messages of a few channels may be far back, so they are searched by channel.
  const isNarrow = visible !== undefined && visible.channels !== 'all' && channel === undefined
  return isFiltered || isNarrow || (channel !== undefined && signed === true)
}

function pageOf(rows: readonly RawMessage[], nextBefore: number | null): string {
  const page = { messages: rows.map(publicMessage), nextBefore }
  return JSON.stringify(page satisfies z.infer<typeof messagePageSchema>)
}

/** A row of `messageColumns` in the form of the API. */
export function publicMessage(row: RawMessage): Message {
  const [fromNodeNum, toNodeNum, notice] = [row[3], row[4], row[19]]
  const message: Message = {
    id: row[0],
    // Below 0: unknown.
    packetId: Math.max(0, row[2]),
    fromNodeNum,
    fromNodeId: formatNodeId(fromNodeNum),
    toNodeNum,
    toNodeId: toNodeNum === BROADCAST ? EVERYBODY : formatNodeId(toNodeNum),
    channel: row[5],
    text: row[6],
    replyId: row[7],
    emoji: row[8] === 1,
    timestamp: row[9],
    rxSnr: row[10],
    rxRssi: row[11],
    hopsAway: row[12],
    viaMqtt: row[13] === 1,
    pkiEncrypted: row[14] === 1,
    signed: row[15] === 1,
    direction: row[16],
    deliveryState: row[17],
    routingError: row[18],
    sentBy: row[20],
    conflicting: row[21] === 1,
    keyDoubt: row[23],
    radio: row[25],
  }
  return notice === null ? message : { ...message, notice }
}

const EVERYBODY = formatNodeId(BROADCAST)
