import { and, eq, inArray, sql } from 'drizzle-orm'
import { messages, nodeRequests, traceroutes } from '../../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../../db/store.ts'
import { advance, type DeliveryEvent, NOT_SENT } from './delivery.ts'

/** One of our packets: its sender, which is one of our radios, and its id. */
export type PacketKey = { readonly nodeNum: number; readonly packetId: number }

const value = sql.placeholder

/** Of a radio that a collector has, only the collector knows. */
const IS_OURS = sql.raw("coalesce((select s.kind from sources s where s.id = source_id), '') <> 'ingest'")

const queries = prepareOnce((db) => ({
  message: db
    .select({
      id: messages.id,
      from: messages.fromNodeNum,
      to: messages.toNodeNum,
      state: messages.deliveryState,
      error: messages.routingError,
    })
    .from(messages)
    .where(
      and(
        eq(messages.fromNodeNum, value('nodeNum')),
        eq(messages.packetId, value('packetId')),
        eq(messages.direction, 'out'),
      ),
    )
    .prepare(),
  setMessage: db
    .update(messages)
    .set({
      deliveryState: sql`${value('state')}`,
      routingError: sql`${value('error')}`,
      notice: sql`coalesce(${value('notice')}, ${messages.notice})`,
    })
    .where(eq(messages.id, value('id')))
    .prepare(),
  traceroute: db
    .select({
      id: traceroutes.id,
      from: traceroutes.fromNodeNum,
      to: traceroutes.toNodeNum,
      state: traceroutes.state,
      error: traceroutes.routingError,
    })
    .from(traceroutes)
    .where(and(eq(traceroutes.fromNodeNum, value('nodeNum')), eq(traceroutes.requestId, value('packetId'))))
    .prepare(),
  setTraceroute: db
    .update(traceroutes)
    .set({
      state: sql`${value('state')}`,
      routingError: sql`${value('error')}`,
      notice: sql`coalesce(${value('notice')}, ${traceroutes.notice})`,
    })
    .where(eq(traceroutes.id, value('id')))
    .prepare(),
  request: db
    .select({
      id: nodeRequests.id,
      from: nodeRequests.fromNodeNum,
      to: nodeRequests.toNodeNum,
      state: nodeRequests.state,
      error: nodeRequests.routingError,
    })
    .from(nodeRequests)
    .where(and(eq(nodeRequests.fromNodeNum, value('nodeNum')), eq(nodeRequests.requestId, value('packetId'))))
    .prepare(),
  setRequest: db
    .update(nodeRequests)
    .set({
      state: sql`${value('state')}`,
      routingError: sql`${value('error')}`,
      notice: sql`coalesce(${value('notice')}, ${nodeRequests.notice})`,
    })
    // What was answered stays answered, whatever the radio says of its request.
    .where(sql`id = ${value('id')} and answered_at is null`)
    .prepare(),
  loseMessages: db
    .update(messages)
    .set({
      deliveryState: sql`iif(delivery_state = 'queued', 'failed', 'unknown')`,
      routingError: sql`iif(delivery_state = 'queued', ${NOT_SENT}, ${messages.routingError})`,
    })
    // In the wording of the index `messages_unfinished`; with bound values SQLite would not use it.
    .where(and(eq(messages.direction, 'out'), sql`delivery_state in ('queued', 'sent')`, IS_OURS))
    .prepare(),
  loseTraceroutes: db
    .update(traceroutes)
    .set({
      state: sql`iif(state = 'queued', 'failed', 'unknown')`,
      routingError: sql`iif(state = 'queued', ${NOT_SENT}, ${traceroutes.routingError})`,
    })
    .where(and(inArray(traceroutes.state, ['queued', 'sent']), IS_OURS))
    .prepare(),
  loseRequests: db
    .update(nodeRequests)
    .set({
      state: sql`iif(state = 'queued', 'failed', 'unknown')`,
      routingError: sql`iif(state = 'queued', ${NOT_SENT}, ${nodeRequests.routingError})`,
    })
    .where(and(inArray(nodeRequests.state, ['queued', 'sent']), IS_OURS))
    .prepare(),
}))

/** One of our packets as it is stored, and the query that changes it. */
async function findSent(store: Store, key: PacketKey) {
  const { message, setMessage, traceroute, setTraceroute, request, setRequest } = queries(store)
  const text = await message.get(key)
  if (text !== undefined) return { row: text, update: setMessage, isRequest: false }
  const traced = await traceroute.get(key)
  if (traced !== undefined) return { row: traced, update: setTraceroute, isRequest: false }
  return { row: await request.get(key), update: setRequest, isRequest: true }
}

/**
 * Records an event of one of our packets; does nothing for an unknown one. Calls run one after the other. Returns the
 * node that was asked if the packet is a request.
 */
export async function recordDelivery(store: Store, key: PacketKey, event: DeliveryEvent): Promise<number | null> {
  const { row, update, isRequest } = await findSent(store, key)
  // A message of our radio without a state was only overheard.
  if (row === undefined || row.state === null) return null
  const asked = isRequest ? row.to : null
  const next = advance({ ...row, state: row.state }, event)
  const notice = event.type === 'notice' ? event.message : null
  if (next.state === row.state && next.error === row.error && notice === null) return asked
  await store.atomic([bind(update, { id: row.id, state: next.state, error: next.error, notice })])
  return asked
}

/**
 * Called after a start. Packets that waited in an earlier process were not sent; the outcome of those that a radio
 * already had is unknown.
 */
export async function loseUnfinished(store: Store): Promise<void> {
  const { loseMessages, loseTraceroutes, loseRequests } = queries(store)
  await store.atomic([bind(loseMessages, {}), bind(loseTraceroutes, {}), bind(loseRequests, {})])
}
