import { ownedBy } from '../../base/owned.ts'
import type { NewEvent } from './event.ts'
import { and, eq, sql } from 'drizzle-orm'
import { messages, nodes, traceroutes } from '../../../db/schema.ts'
import { type Db, prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Ctx } from '../../base/context.ts'
import { type Message, messageColumns, publicMessage, type RawMessage } from '../messages/messages.ts'
import type { NodeRow } from '../nodes/columns.ts'
import { type Node, publicNode } from '../nodes/nodes.ts'
import { channelsOf } from '../nodes/seen.ts'
import type { NodeChannels } from '../../accounts/access/visible.ts'
import { placeOfMessage } from '../../accounts/access/visible.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { deliveryEvent, tracerouteEvent } from './events.ts'

// Events carry enough data for pages to update their lists without a request.

/** When more nodes change at once, pages reload the list, which costs less than a flood of events to every reader. */
const MAX_NODES = 50
/** Nodes read at a time. */
const ROWS = 250
/** The number of nodes whose last reported state is stored. */
const MAX_KNOWN = 5000

const queries = prepareOnce((db) => ({
  nodes: db
    .select()
    .from(nodes)
    .where(sql`${nodes.nodeNum} in (select value from json_each(${sql.placeholder('nums')}))`)
    .prepare(),
  page: db
    .select()
    .from(nodes)
    .where(sql`${nodes.id} > ${sql.placeholder('after')}`)
    .orderBy(nodes.id)
    .limit(ROWS)
    .prepare(),
  traceroute: db
    .select({ id: traceroutes.id, to: traceroutes.toNodeNum, channel: traceroutes.channel })
    .from(traceroutes)
    .where(
      and(
        eq(traceroutes.fromNodeNum, sql.placeholder('nodeNum')),
        eq(traceroutes.requestId, sql.placeholder('packetId')),
      ),
    )
    .prepare(),
  message: db
    .select(messageColumns)
    .from(messages)
    .where(
      and(eq(messages.fromNodeNum, sql.placeholder('nodeNum')), eq(messages.packetId, sql.placeholder('packetId'))),
    )
    .prepare(),
}))

/** Reports the events of stored packets, with their details if those can be read. */
export async function announceHeard(
  { store, log, events }: Pick<Ctx, 'store' | 'log' | 'events'>,
  heard: readonly NewEvent[],
): Promise<void> {
  if (events === null) return
  if (events.elsewhere !== undefined) return events.elsewhere.tell({ kind: 'heard', events: heard })
  const detailed = await addDetails(store, heard).catch((error: unknown) => {
    log.error('Live events are sent without their details', { error })
    return heard
  })
  events.publish(detailed)
}

/**
 * Adds the changes of the nodes, the messages in the form of the API, and the ids of the traceroutes to the events of
 * stored packets.
 */
async function addDetails(store: Store, events: readonly NewEvent[]): Promise<NewEvent[]> {
  const nums = events.flatMap(({ kind, data }) => (kind === 'node' ? [Number(data['nodeNum'])] : []))
  // The state is recorded in any case, because pages load the whole node after such an event.
  const read = await readChanges(store, nums)
  const changes = nums.length > MAX_NODES ? new Map<number, NodeChanges>() : read
  const detailed: NewEvent[] = []
  for (const event of events) {
    const found = event.kind === 'node' ? changes.get(Number(event.data['nodeNum'])) : undefined
    if (found !== undefined) detailed.push({ ...event, ...found })
    else if (event.kind === 'traceroute') detailed.push(...(await addTraceroute(store, event)))
    else detailed.push(event.kind === 'message' ? await addMessage(store, event) : event)
  }
  return detailed
}

async function addMessage(store: Store, event: NewEvent): Promise<NewEvent> {
  const { fromNodeNum, packetId } = event.data
  if (typeof fromNodeNum !== 'number' || typeof packetId !== 'number') return event
  const message = await readMessage(store, { nodeNum: fromNodeNum, packetId })
  if (message === null) return event
  const sender = reported(store.db).nodes.get(fromNodeNum)?.node
  // Pages name a node whose name was altered together with its id.
  const senderName = sender?.nameAltered === true ? null : (sender?.longName ?? null)
  return { ...event, data: { ...event.data, message }, ...(senderName !== null && { senderName }) }
}

/** Nothing if the answer was not believed, so that there is no such traceroute. */
async function addTraceroute(store: Store, event: NewEvent): Promise<NewEvent[]> {
  const { fromNodeNum, requestId } = event.data
  const found = await queries(store).traceroute.get({ nodeNum: Number(fromNodeNum), packetId: Number(requestId) })
  return found === undefined ? [] : [{ ...event, data: { id: found.id, ...event.data } }]
}

async function readMessage(store: Store, key: { nodeNum: number; packetId: number }): Promise<Message | null> {
  const [row] = await rawRows<RawMessage>(queries(store).message, key)
  return row === undefined ? null : publicMessage(row)
}

type Sent = { readonly nodeNum: number; readonly packetId: number }

/**
 * Events that the state of one of our messages or traceroutes may have changed. For a message they have the new state.
 */
export async function readDelivery(store: Store, key: Sent): Promise<NewEvent[]> {
  const message = await readMessage(store, key)
  return message === null ? tracedOf(store, key) : [deliveryOf(key, message)]
}

/** The same for a message or traceroute that was just sent, with the message itself. */
export async function readSent(store: Store, key: Sent): Promise<NewEvent> {
  const message = await readMessage(store, key)
  return message === null ? deliveryEvent(key) : { ...deliveryOf(key, message), sent: message }
}

/** One for the people who read messages, as for a message, and one for those who read traceroutes. */
async function tracedOf(store: Store, key: Sent): Promise<NewEvent[]> {
  const event = deliveryEvent(key)
  const found = await queries(store).traceroute.get(key)
  if (found === undefined) return [event]
  const { id, to, channel } = found
  const place = { channel: channel ?? UNKNOWN_CHANNEL, isDirect: false }
  const traced = tracerouteEvent({ ...key, to }, place)
  return [
    { ...event, place, nodes: [key.nodeNum, to] },
    { ...traced, data: { id, ...traced.data } },
  ]
}

function deliveryOf(key: Sent, message: Message): NewEvent {
  const event = deliveryEvent(key)
  const { deliveryState, routingError, notice = null, channel, fromNodeNum, toNodeNum } = message
  return {
    ...event,
    data: { ...event.data, deliveryState, routingError, notice },
    place: placeOfMessage({ channel, to: toNodeNum }),
    nodes: [fromNodeNum, toNodeNum],
  }
}

/** Reports nodes that a user changed or deleted. */
export async function announceNodes({ store, events }: Pick<Ctx, 'store' | 'events'>, nums: readonly number[]) {
  if (events === null) return
  if (events.elsewhere !== undefined) return events.elsewhere.tell({ kind: 'nodes', nums })
  const rows = await queries(store).nodes.all({ nums: JSON.stringify(nums) })
  const present = new Map(rows.map((row) => [row.nodeNum, row]))
  events.publish(
    nums.map((nodeNum): NewEvent => {
      const row = present.get(nodeNum)
      const heard = { heardAt: row?.lastHeard ?? null, signed: false }
      const changed = row === undefined ? { contents: { isDeleted: true } } : noteChanges(store, row)
      return { kind: 'node', data: { nodeNum, nodeId: formatNodeId(nodeNum), ...heard }, nodes: [nodeNum], ...changed }
    }),
  )
}

/** Reports the nodes of a radio's list that have changed: nothing was heard of them. */
export async function announceListed({ store, events }: Pick<Ctx, 'store' | 'events'>, nums: readonly number[]) {
  // Whoever begins to read loads the list.
  if (events === null || nums.length === 0 || reported(store.db).reading === null) return
  const changed = [...(await readChanges(store, nums))].filter(
    ([, { contents }]) => Object.keys(contents.changes).length > 0,
  )
  events.publish(
    changed.map(([nodeNum, found]): NewEvent => {
      const data = { nodeNum, nodeId: formatNodeId(nodeNum), heardAt: null, signed: false }
      const details = changed.length > MAX_NODES ? { heardBy: [] } : found
      return { kind: 'node', data, nodes: [nodeNum], ...details }
    }),
  )
}

/** The changes of a node for an event, and the channels on which they came. */
type NodeChanges = { readonly contents: { readonly changes: Partial<Node> }; readonly channels: NodeChannels }

type Known = { readonly node: Node; readonly channels: NodeChannels }

/** What this process reported. `nodes`: by number, the least recently reported first. */
const reported = ownedBy((_db: Db): { readonly nodes: Map<number, Known>; reading: Promise<void> | null } => ({
  nodes: new Map(),
  reading: null,
}))

/**
 * Notes the state of the nodes before the first reader of events loads them. From then on events contain only changes,
 * even for nodes that this process has not reported yet.
 */
export function beginTelling(store: Store): Promise<void> {
  const state = reported(store.db)
  if (state.reading !== null) return state.reading
  const reading = noteAll(store)
  state.reading = reading
  reading.catch(() => (state.reading = null))
  return reading
}

async function noteAll(store: Store): Promise<void> {
  const known = reported(store.db).nodes
  let after = 0
  while (known.size < MAX_KNOWN) {
    const rows = await queries(store).page.all({ after })
    for (const row of rows) {
      // What was reported meanwhile is newer.
      if (known.size < MAX_KNOWN && !known.has(row.nodeNum)) {
        known.set(row.nodeNum, { node: publicNode(row), channels: channelsOf(row) })
      }
    }
    after = rows.at(-1)?.id ?? 0
    if (rows.length < ROWS) return
    await nextTurn()
  }
}

async function readChanges(store: Store, nums: readonly number[]): Promise<ReadonlyMap<number, NodeChanges>> {
  if (nums.length === 0) return new Map()
  const rows = await queries(store).nodes.all({ nums: JSON.stringify(nums) })
  return new Map(rows.map((row) => [row.nodeNum, noteChanges(store, row)]))
}

/**
 * The changes of a node since this process last reported or first noted it; the whole node if it did neither. Each
 * changed value is complete, so a reader who loaded the node in between also ends up with the right state.
 */
function noteChanges(store: Store, row: NodeRow): NodeChanges {
  const node = publicNode(row)
  const channels = channelsOf(row)
  const known = reported(store.db).nodes
  const before = known.get(node.nodeNum)
  known.delete(node.nodeNum)
  known.set(node.nodeNum, { node, channels })
  const [oldest] = known.size > MAX_KNOWN ? known.keys() : []
  if (oldest !== undefined) known.delete(oldest)
  if (before === undefined) return { contents: { changes: node }, channels }
  // The same value on another channel is new to viewers who may read only that channel.
  const changed = Object.entries(node).filter(
    ([name, value]) =>
      !isSame(value, Reflect.get(before.node, name)) ||
      Reflect.get(channels, name) !== Reflect.get(before.channels, name),
  )
  return { contents: { changes: Object.fromEntries(changed) }, channels }
}

function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  const areObjects = typeof one === 'object' && typeof other === 'object'
  return areObjects && JSON.stringify(one) === JSON.stringify(other)
}
