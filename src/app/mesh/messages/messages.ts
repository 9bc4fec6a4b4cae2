import { and, desc, eq, getTableColumns, gte, lt, ne, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { contains } from '../../../db/contains.ts'
import { messages } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { createBodyCache } from '../nodes/body-cache.ts'
import { DELIVERY_STATES } from '../../../shared/delivery-states.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'

export const MAX_MESSAGES = 1000

export const messageSchema = z
  .object({
    id: z.int(),
    packetId: z.int().describe('Unique for one sender; 0: none'),
    fromNodeNum: nodeNumField,
    fromNodeId: nodeIdField,
    toNodeNum: nodeNumField.describe('4294967295: everybody'),
    toNodeId: nodeIdField,
    channel: z.int().describe('As GET /api/channels numbers it; of no meaning when pkiEncrypted'),
    text: z.string().meta({ examples: ['Is anybody on the hill?'] }),
    replyId: z.int().nullable().describe('The packetId this answers'),
    emoji: z.boolean().describe('The text is a reaction to replyId'),
    timestamp: timeField,
    rxSnr: z.number().nullable().describe('dB, of the last transmitter'),
    rxRssi: z.int().nullable().describe('dBm, of the last transmitter'),
    hopsAway: z.int().nullable().describe('The fewest hops a copy of it came by'),
    viaMqtt: z.boolean(),
    pkiEncrypted: z.boolean(),
    signed: z.boolean().describe("The sender's signature was verified (firmware 2.8)"),
    direction: z.enum(['in', 'out']),
    deliveryState: z.enum(DELIVERY_STATES).nullable(),
    routingError: z.string().nullable(),
    notice: z.string().optional().describe('What the radio that sends it said of it, in its own words'),
    sentBy: z.string().nullable().describe('Username of the sender, or automation:<name>; null for received messages'),
    radio: z.string().nullable().describe('Name of the radio that this service sends it by; null for all others'),
  })
  .meta({ id: 'Message', description: 'A text of the mesh, received or sent' })
export type Message = z.infer<typeof messageSchema>

export const messagePageSchema = z
  .object({
    messages: z.array(messageSchema),
    nextBefore: z.int().nullable().describe('`before` of the next page; null: this is the last one'),
  })
  .meta({ id: 'MessagePage' })

/** What `publicMessage` needs. A join would let SQLite begin at the sources and sort. */
export const messageColumns = {
  ...getTableColumns(messages),
  radio: sql<string | null>`iif(${messages.deliveryState} is null, null,
    (select name from sources where sources.id = ${messages.sourceId}))`,
}

type MessageRow = typeof messages.$inferSelect & { readonly radio: string | null }

export type MessageFilters = {
  readonly limit: number
  /** Id of a message: only those that arrived before it. */
  readonly before?: number | undefined
  /** Time in milliseconds, inclusive. */
  readonly since?: number | undefined
  readonly channel?: number | undefined
  /** Direct messages from and to this node. */
  readonly with?: number | undefined
  readonly q?: string | undefined
  /** Only those whose signature was verified. */
  readonly signed?: true | undefined
}

const queries = prepareOnce((db) => ({ newest: select(db, undefined).limit(sql.placeholder('limit')).prepare() }))

const plainList = createBodyCache('messages')

/** A page as JSON, newest first. */
export async function listMessages(store: Store, { limit, ...filters }: MessageFilters): Promise<string> {
  // One more than asked for tells whether there is a next page.
  const conditions = conditionsOf(filters)
  if (conditions.length > 0) {
    const found = await select(store.db, and(...conditions))
      .limit(limit + 1)
      .all()
    return serialise(found, limit)
  }
  const newest = async () => serialise(await queries(store).newest.all({ limit: limit + 1 }), limit)
  return (await plainList(store, String(limit), newest)).json
}

function serialise(rows: readonly MessageRow[], limit: number): string {
  const messages = rows.slice(0, limit).map(publicMessage)
  const nextBefore = rows.length > limit ? (messages.at(-1)?.id ?? null) : null
  return JSON.stringify({ messages, nextBefore } satisfies z.infer<typeof messagePageSchema>)
}

function select(db: Db, where: SQL | undefined) {
  return db.select(messageColumns).from(messages).where(where).orderBy(desc(messages.id)).$dynamic()
}

function conditionsOf({ before, since, channel, with: nodeNum, q, signed }: Omit<MessageFilters, 'limit'>): SQL[] {
  const isWithNode =
    nodeNum === undefined
      ? undefined
      : and(ne(messages.toNodeNum, BROADCAST), or(eq(messages.fromNodeNum, nodeNum), eq(messages.toNodeNum, nodeNum)))
  return [
    before === undefined ? undefined : lt(messages.id, before),
    since === undefined ? undefined : gte(messages.timestamp, since),
    channel === undefined ? undefined : eq(messages.channel, channel),
    isWithNode,
    q === undefined ? undefined : contains(messages.text, q),
    signed === undefined ? undefined : sql`signed`,
  ].filter((condition) => condition !== undefined)
}

/** What the API tells of a row. */
export function publicMessage(row: MessageRow): Message {
  const { id, fromNodeNum, toNodeNum, channel, text, replyId, emoji, timestamp, rxSnr, rxRssi, hopsAway } = row
  const { viaMqtt, pkiEncrypted, signed, direction, deliveryState, routingError, notice, sentBy, radio } = row
  return {
    id,
    // Below 0: a stand-in for none.
    packetId: Math.max(0, row.packetId),
    fromNodeNum,
    fromNodeId: formatNodeId(fromNodeNum),
    toNodeNum,
    toNodeId: formatNodeId(toNodeNum),
    channel,
    text,
    replyId,
    emoji,
    timestamp,
    rxSnr,
    rxRssi,
    hopsAway,
    viaMqtt,
    pkiEncrypted,
    signed,
    direction,
    deliveryState,
    routingError,
    ...(notice === null ? {} : { notice }),
    sentBy,
    radio,
  }
}
