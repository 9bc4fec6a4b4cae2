import { and, eq, inArray, sql } from 'drizzle-orm'
import { messages, traceroutes } from '../../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../../db/store.ts'
import { advance, type DeliveryEvent, NOT_SENT } from './delivery.ts'

/** One of our packets: its sender, which is one of our radios, and its id. */
export type PacketKey = { readonly nodeNum: number; readonly packetId: number }

const value = sql.placeholder

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
  loseMessages: db
    .update(messages)
    .set({
      deliveryState: sql`iif(delivery_state = 'queued', 'failed', 'unknown')`,
      routingError: sql`iif(delivery_state = 'queued', ${NOT_SENT}, ${messages.routingError})`,
    })
    // In the wording of the index `messages_unfinished`; with bound values SQLite would not use it.
    .where(and(eq(messages.direction, 'out'), sql`delivery_state in ('queued', 'sent')`))
    .prepare(),
  loseTraceroutes: db
    .update(traceroutes)
    .set({
      state: sql`iif(state = 'queued', 'failed', 'unknown')`,
      routingError: sql`iif(state = 'queued', ${NOT_SENT}, ${traceroutes.routingError})`,
    })
    .where(inArray(traceroutes.state, ['queued', 'sent']))
    .prepare(),
}))

/** Records an event of one of our packets; does nothing for an unknown one. Calls run one after the other. */
export async function recordDelivery(store: Store, key: PacketKey, event: DeliveryEvent): Promise<void> {
  const prepared = queries(store)
  const message = await prepared.message.get(key)
  const row = message ?? (await prepared.traceroute.get(key))
  // A message of our radio without a state was only overheard.
  if (row === undefined || row.state === null) return
  const next = advance({ ...row, state: row.state }, event)
  const notice = event.type === 'notice' ? event.message : null
  if (next.state === row.state && next.error === row.error && notice === null) return
  const update = message === undefined ? prepared.setTraceroute : prepared.setMessage
  await store.atomic([bind(update, { id: row.id, state: next.state, error: next.error, notice })])
}

/**
 * Called after a start. Packets that waited in an earlier process were not sent; the outcome of those that a radio
 * already had is unknown.
 */
export async function loseUnfinished(store: Store): Promise<void> {
  const { loseMessages, loseTraceroutes } = queries(store)
  await store.atomic([bind(loseMessages, {}), bind(loseTraceroutes, {})])
}
