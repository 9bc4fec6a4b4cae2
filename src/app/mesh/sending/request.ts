import { and, desc, eq, getTableColumns, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodeRequests } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement } from '../../../db/store.ts'
import { encodeRequest } from '../../../meshtastic/link/requests.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { canWriteChannel } from '../../../shared/access/scope.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
import { REQUEST_KINDS, type RequestKind } from '../../../shared/mesh/request-kinds.ts'
import { audit } from '../../audit/audit.ts'
import type { Reader, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { seenNode } from '../nodes/seen.ts'
import { demandPlace, newPacketId, writeCommand } from '../downlink/commands.ts'
import { findCollector } from '../downlink/listening.ts'
import type { Collector } from '../radios/listener.ts'
import { announceNodes } from '../live/details.ts'
import type { PacketKey } from '../messages/delivery-records.ts'
import { chooseRadio, requireSender } from '../radios/choose-radio.ts'
import type { Outgoing, OutgoingKind } from '../radios/radio.ts'
import { nameSender, noteCommand, radioName, type SendCtx } from './send.ts'

/** The primary channel of a radio, on which our requests are sent. */
const CHANNEL = 0
/** Requests that are kept: of all nodes, and shown of one. */
const MAX_KEPT = 1000
const MAX_SHOWN = 20

export const newRequestSchema = z.strictObject({
  kind: z
    .enum(REQUEST_KINDS)
    .describe(
      'What the node shall send. Firmware answers a position once in three minutes, and names once in twelve hours to the same radio',
    ),
  radio: radioName,
})
type NewRequest = z.infer<typeof newRequestSchema>

export const requestSchema = z
  .object({
    id: z.int(),
    kind: z.enum(REQUEST_KINDS),
    requestId: z.int().describe('Packet id of the request'),
    nodeNum: nodeNumField,
    nodeId: nodeIdField,
    timestamp: timeField,
    answeredAt: timeField.nullable(),
    state: z
      .enum(DELIVERY_STATES)
      .describe('As for a message. delivered without answeredAt: the node has the request and did not answer yet'),
    routingError: z.string().nullable().describe('NO_RESPONSE: the node has nothing to answer with'),
    notice: z.string().nullable().describe('The message of the radio that sent the request'),
    requestedBy: z.string(),
    radio: z.string().nullable().describe('Name of the radio that sent the request'),
  })
  .meta({ id: 'NodeRequest', description: 'A request to a node for its position, measurements or names' })
export type NodeRequest = z.infer<typeof requestSchema>

const value = sql.placeholder

const columns = {
  ...getTableColumns(nodeRequests),
  radio: sql<string | null>`(select name from sources where sources.id = ${nodeRequests.sourceId})`,
}

const queries = prepareOnce((db) => ({
  byRequest: db
    .select(columns)
    .from(nodeRequests)
    .where(and(eq(nodeRequests.fromNodeNum, value('nodeNum')), eq(nodeRequests.requestId, value('packetId'))))
    .prepare(),
  ofNode: db
    .select(columns)
    .from(nodeRequests)
    .where(eq(nodeRequests.toNodeNum, value('nodeNum')))
    .orderBy(desc(nodeRequests.id))
    .limit(MAX_SHOWN)
    .prepare(),
  trim: db
    .delete(nodeRequests)
    .where(sql`id <= (select max(id) from node_requests) - ${sql.raw(String(MAX_KEPT))}`)
    .prepare(),
}))

/**
 * Asks a node for its position, measurements or names. Throws `node_not_found` for one that the viewer does not see,
 * `forbidden`, `invalid_request` for an unknown radio or a radio's own node, `radio_unavailable`, `queue_full`; nothing
 * is stored then.
 */
export async function requestFromNode(ctx: SignedInCtx, nodeNum: number, asked: NewRequest): Promise<NodeRequest> {
  const { nodeNum: to } = await seenNode(ctx, nodeNum)
  if (!canWriteChannel(ctx.viewer.view, CHANNEL)) {
    throw new AppError('forbidden', 'You may not send on the primary channel')
  }
  return requestFor(ctx, to, asked)
}

/** The same for somebody whose rights were checked, or for another service. */
export async function requestFor(ctx: SendCtx, to: number, asked: NewRequest): Promise<NodeRequest> {
  const collector = await findCollector(ctx, 'request', { radio: asked.radio, to, channel: CHANNEL })
  if (collector !== null) return storeAndCommand(ctx, to, asked.kind, collector)
  const { radio, command = null } = ctx
  if (radio === null) throw new AppError('unsupported_on_this_runtime')
  if (asked.radio !== undefined) requireSender(radio, asked.radio)
  const chosen = asked.radio ?? (await chooseRadio(ctx, { to, channel: CHANNEL, replyId: null }))
  const outgoing = radio.reserve(paceOf(asked.kind), { radio: chosen, command })
  try {
    return await storeAndAsk(ctx, to, asked.kind, outgoing)
  } finally {
    outgoing.release()
  }
}

/** The latest requests to a node, newest first. Throws `node_not_found` for one that the viewer does not see. */
export async function listRequests(ctx: Reader, nodeNum: number): Promise<NodeRequest[]> {
  const node = await seenNode(ctx, nodeNum)
  return (await queries(ctx.store).ofNode.all({ nodeNum: node.nodeNum })).map(publicRequest)
}

/** The firmware counts packets by their port. */
function paceOf(kind: RequestKind): OutgoingKind {
  return kind === 'position' || kind === 'node-info' ? kind : 'telemetry'
}

async function storeAndAsk(ctx: SendCtx, to: number, kind: RequestKind, outgoing: Outgoing): Promise<NodeRequest> {
  const { source, nodeNum, packetId, hopLimit } = outgoing
  if (to === nodeNum) throw new AppError('invalid_request', "The node must not be the radio's own")
  const way = { to, channel: CHANNEL, id: packetId, hopLimit, wantAck: hopLimit > 0 }
  const packet = encodeRequest(way, kind, { now: ctx.now(), user: ctx.radio?.ownUser?.(source) ?? null })
  if (packet === null) throw new AppError('radio_unavailable', 'The radio has not said its names yet')
  await ctx.store.atomic([
    insertRequest(ctx, to, kind, outgoing, 'queued'),
    bind(queries(ctx.store).trim, {}),
    audit(ctx, 'message_sent', { kind, packetId, to, ...noteCommand(ctx) }),
  ])
  const stored = await readRequest(ctx, { nodeNum, packetId })
  outgoing.send(packet)
  return stored
}

/** Asks a collector to send it. */
async function storeAndCommand(
  ctx: SendCtx,
  to: number,
  request: RequestKind,
  collector: Collector,
): Promise<NodeRequest> {
  await demandPlace(ctx, collector)
  const { nodeNum, source } = collector
  const packetId = newPacketId()
  const askedBy = nameSender(ctx, null) ?? ''
  await ctx.store.atomic([
    insertRequest(ctx, to, request, { source, nodeNum, packetId }, 'waiting'),
    bind(queries(ctx.store).trim, {}),
    writeCommand(ctx, collector, { kind: 'request', content: { to, request }, packetId, askedBy }),
    audit(ctx, 'message_sent', { kind: request, packetId, to, radio: source }),
  ])
  await announceNodes(ctx, [to])
  return readRequest(ctx, { nodeNum, packetId })
}

function insertRequest(
  ctx: SendCtx,
  to: number,
  kind: RequestKind,
  { source, nodeNum, packetId }: Pick<Outgoing, 'source' | 'nodeNum' | 'packetId'>,
  state: 'queued' | 'waiting',
): Statement {
  return ctx.store.db.insert(nodeRequests).values({
    sourceId: sql`(select id from sources where name = ${source})`,
    kind,
    requestId: packetId,
    fromNodeNum: nodeNum,
    toNodeNum: to,
    timestamp: ctx.now(),
    state,
    requestedBy: nameSender(ctx, null) ?? '',
  })
}

async function readRequest({ store }: SendCtx, key: PacketKey): Promise<NodeRequest> {
  const row = await queries(store).byRequest.get(key)
  if (row === undefined) throw new Error('the request that was stored is gone')
  return publicRequest(row)
}

type Row = typeof nodeRequests.$inferSelect & { readonly radio: string | null }

function publicRequest({ sourceId: _source, fromNodeNum: _from, toNodeNum: nodeNum, ...row }: Row): NodeRequest {
  return { ...row, nodeNum, nodeId: formatNodeId(nodeNum) }
}
