import type { NewEvent } from './event.ts'
import { and, eq, sql } from 'drizzle-orm'
import { messages, nodes } from '../../../db/schema.ts'
import { type Db, prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Ctx } from '../../context.ts'
import { type Message, messageColumns, publicMessage, type RawMessage } from '../messages/messages.ts'
import { type Node, publicNode } from '../nodes/nodes.ts'
import { deliveryEvent } from './events.ts'

// Events carry enough data for pages to update their lists without a request.

/** When more nodes change at once, pages load the list, which costs less than a flood of events to every reader. */
const MOST_NODES = 50
/** The number of nodes whose last reported state is stored. */
const MOST_KNOWN = 5000

const queries = prepareOnce((db) => ({
  nodes: db
    .select()
    .from(nodes)
    .where(sql`${nodes.nodeNum} in (select value from json_each(${sql.placeholder('nums')}))`)
    .prepare(),
  message: db
    .select(messageColumns)
    .from(messages)
    .where(
      and(eq(messages.fromNodeNum, sql.placeholder('nodeNum')), eq(messages.packetId, sql.placeholder('packetId'))),
    )
    .prepare(),
}))

/** Adds the changes of the nodes, and the messages in the form of the API, to the events of stored packets. */
export async function addDetails(store: Store, events: readonly NewEvent[]): Promise<NewEvent[]> {
  const nums = events.flatMap(({ kind, data }) => (kind === 'node' ? [Number(data['nodeNum'])] : []))
  // Recorded in any case: after such an event pages load the whole node.
  const read = await readChanges(store, nums)
  const changes = nums.length > MOST_NODES ? new Map<number, Changes>() : read
  const detailed: NewEvent[] = []
  for (const event of events) {
    const found = event.kind === 'node' ? changes.get(Number(event.data['nodeNum'])) : undefined
    if (found !== undefined) detailed.push({ ...event, contents: { changes: found } })
    else detailed.push(event.kind === 'message' ? await addMessage(store, event) : event)
  }
  return detailed
}

async function addMessage(store: Store, event: NewEvent): Promise<NewEvent> {
  const { fromNodeNum, packetId } = event.data
  if (typeof fromNodeNum !== 'number' || typeof packetId !== 'number') return event
  const message = await readMessage(store, { nodeNum: fromNodeNum, packetId })
  return message === null ? event : { ...event, data: { ...event.data, message } }
}

async function readMessage(store: Store, key: { nodeNum: number; packetId: number }): Promise<Message | null> {
  const [row] = await rawRows<RawMessage>(queries(store).message, key)
  return row === undefined ? null : publicMessage(row)
}

/** The state of a message or traceroute of ours may have changed; for a message, the new state. */
export async function readDelivery(store: Store, key: { nodeNum: number; packetId: number }): Promise<NewEvent> {
  const event = deliveryEvent(key)
  const message = await readMessage(store, key)
  if (message === null) return event
  const { deliveryState, routingError, notice = null } = message
  return { ...event, data: { ...event.data, deliveryState, routingError, notice } }
}

/** Reports nodes that a user changed or deleted. */
export async function announceNodes({ store, events }: Pick<Ctx, 'store' | 'events'>, nums: readonly number[]) {
  if (events === null) return
  const rows = await queries(store).nodes.all({ nums: JSON.stringify(nums) })
  const present = new Map(rows.map((row) => [row.nodeNum, row]))
  events.publish(
    nums.map((nodeNum): NewEvent => {
      const row = present.get(nodeNum)
      const heard = { heardAt: row?.lastHeard ?? null, signed: false }
      const contents = row === undefined ? { isDeleted: true } : { changes: noteChanges(store, publicNode(row)) }
      return { kind: 'node', data: { nodeNum, nodeId: formatNodeId(nodeNum), ...heard }, contents }
    }),
  )
}

type Changes = Partial<Node>

/** Nodes as last reported, by number; the least recently reported one is the first. */
const toldNodes = new WeakMap<Db, Map<number, Node>>()

async function readChanges(store: Store, nums: readonly number[]): Promise<ReadonlyMap<number, Changes>> {
  if (nums.length === 0) return new Map()
  const rows = await queries(store).nodes.all({ nums: JSON.stringify(nums) })
  return new Map(rows.map((row) => [row.nodeNum, noteChanges(store, publicNode(row))]))
}

/**
 * The changes of a node since this process last reported it; everything the first time. A reader who loaded the node in
 * between also has the right state afterwards: the values are complete.
 */
function noteChanges({ db }: Store, node: Node): Changes {
  const told = toldNodes.get(db) ?? new Map<number, Node>()
  toldNodes.set(db, told)
  const before = told.get(node.nodeNum)
  told.delete(node.nodeNum)
  told.set(node.nodeNum, node)
  const [oldest] = told.size > MOST_KNOWN ? told.keys() : []
  if (oldest !== undefined) told.delete(oldest)
  if (before === undefined) return node
  const changed = Object.entries(node).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(Reflect.get(before, name)),
  )
  return Object.fromEntries(changed)
}
