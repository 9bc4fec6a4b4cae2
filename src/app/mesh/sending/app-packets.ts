import { and, eq, sql } from 'drizzle-orm'
import { messages, nodes, traceroutes, waypoints } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import type { PortViewer } from '../../accounts/access/port-viewer.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import { type Actor, audit, type AuditContext } from '../../audit/audit.ts'
import type { Outgoing } from '../radios/radio.ts'

// What Meshtastic apps send that are connected through this service.

/** An app: where it is connected from, and as whom. */
export type AppSender = {
  readonly store: Store
  readonly now: () => number
  /** Address of the app. */
  readonly address: string
  readonly viewer: PortViewer
}

type Sent = Pick<Outgoing, 'source' | 'nodeNum' | 'packetId'>

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  taken: db
    .select({ id: messages.id })
    .from(messages)
    .where(and(eq(messages.fromNodeNum, value('nodeNum')), eq(messages.packetId, value('packetId'))))
    .unionAll(
      db
        .select({ id: traceroutes.id })
        .from(traceroutes)
        .where(and(eq(traceroutes.fromNodeNum, value('nodeNum')), eq(traceroutes.requestId, value('packetId')))),
    )
    .prepare(),
  waypoint: db
    .select()
    .from(waypoints)
    .where(eq(waypoints.id, value('id')))
    .prepare(),
  node: db
    .select({ id: nodes.id, isFavorite: nodes.isFavorite, isIgnored: nodes.isIgnored, isMuted: nodes.isMuted })
    .from(nodes)
    .where(eq(nodes.nodeNum, value('nodeNum')))
    .prepare(),
}))

export function auditContextOf({ store, now, address }: AppSender): AuditContext {
  return { store, now, ip: address, requestId: null, viewer: null }
}

export function actorOf({ viewer: { user } }: Pick<AppSender, 'viewer'>): Actor {
  return { id: user?.id ?? null, username: user?.username ?? null }
}

/** Whether a radio of ours has already sent a text or traceroute with this id. */
export async function isSent(store: Store, key: { nodeNum: number; packetId: number }): Promise<boolean> {
  return (await queries(store).taken.all(key)).length > 0
}

type AppText = {
  readonly to: number
  /** The service's number of the channel. */
  readonly channel: number
  readonly text: string
  /** Bytes of UTF-8. */
  readonly bytes: number
  readonly replyId: number | null
  readonly emoji: boolean
}

/** Stores a text as sent by the user of the port, before the radio gets it. */
export async function storeAppText(sender: AppSender, sent: Sent, message: AppText): Promise<void> {
  const { bytes, ...content } = message
  const { packetId } = sent
  await sender.store.atomic([
    sender.store.db.insert(messages).values({
      sourceId: sql`(select id from sources where name = ${sent.source})`,
      packetId,
      fromNodeNum: sent.nodeNum,
      toNodeNum: content.to,
      channel: content.channel,
      text: content.text,
      replyId: content.replyId,
      emoji: content.emoji,
      timestamp: sender.now(),
      direction: 'out',
      deliveryState: 'queued',
      sentBy: actorOf(sender).username,
    }),
    audit(
      auditContextOf(sender),
      'message_sent',
      { packetId, to: content.to, channel: content.channel, bytes, app: sent.source },
      { actor: actorOf(sender) },
    ),
  ])
}

/** Stores a traceroute to a node, likewise. */
export async function storeAppTraceroute(
  sender: AppSender,
  { source, nodeNum, packetId }: Sent,
  { to, channel }: Pick<AppText, 'to' | 'channel'>,
): Promise<void> {
  await sender.store.atomic([
    sender.store.db.insert(traceroutes).values({
      sourceId: sql`(select id from sources where name = ${source})`,
      requestId: packetId,
      fromNodeNum: nodeNum,
      toNodeNum: to,
      timestamp: sender.now(),
      state: 'queued',
      channel,
      requestedBy: actorOf(sender).username,
    }),
    audit(
      auditContextOf(sender),
      'message_sent',
      { kind: 'traceroute', packetId, to, app: source },
      { actor: actorOf(sender) },
    ),
  ])
}

/**
 * Whether an app may share a waypoint with this id: not in place of one that its user does not see, or that is locked to
 * another node.
 */
export async function mayShareWaypoint({ store, viewer, now }: AppSender, nodeNum: number, id: number) {
  const known = await queries(store).waypoint.get({ id })
  if (known === undefined || (known.expiresAt !== null && known.expiresAt <= now())) return true
  const { permissions, view } = viewer
  const isSeen = permissions.nodes.read && canReadChannel(view, known.channel) && seesNodes(view, [known.fromNodeNum])
  return isSeen && (known.lockedTo === null || known.lockedTo === nodeNum)
}

/** Records a waypoint as sent by the user of the port. It is stored once the radio has it. */
export async function recordAppWaypoint(
  sender: AppSender,
  { source, packetId }: Sent,
  details: Pick<AppText, 'to' | 'channel'> & { readonly waypoint: number },
): Promise<void> {
  const about = { kind: 'waypoint', packetId, ...details, app: source }
  await sender.store.atomic([audit(auditContextOf(sender), 'message_sent', about, { actor: actorOf(sender) })])
}

/** Marks of a node that an app set in the radio. */
export type Marks = { readonly isFavorite?: boolean; readonly isIgnored?: boolean; readonly isMuted?: boolean }

/** Keeps the marks of a node that the radio has taken; does nothing for an unknown node. */
export async function keepMarks(sender: AppSender, nodeNum: number, marks: Marks): Promise<void> {
  const before = await queries(sender.store).node.get({ nodeNum })
  if (before === undefined) return
  const { id, ...had } = before
  const after = { ...had, ...marks }
  if (JSON.stringify(after) === JSON.stringify(had)) return
  await sender.store.atomic([
    audit(
      auditContextOf(sender),
      'node_updated',
      { nodeNum, nodeId: formatNodeId(nodeNum), before: had, after },
      { actor: actorOf(sender) },
    ),
    sender.store.db.update(nodes).set(after).where(eq(nodes.id, id)),
  ])
}

/** What an app asked of a radio: an admin message, or a packet that no ordinary app sends. */
export type AppRequest = {
  /** Name of the radio's source. */
  readonly radio: string
  /** The port that the app is connected to. */
  readonly port: number
  readonly request: string
  readonly outcome: 'passed' | 'answered' | 'dropped' | 'refused'
  /** Why it was refused. */
  readonly reason?: string
  /** Earlier requests of which only the number is recorded. */
  readonly unrecorded?: number
}

/** Records a request. */
export async function recordAppRequest(sender: AppSender, request: AppRequest): Promise<void> {
  await sender.store.atomic([audit(auditContextOf(sender), 'app_requested', request, { actor: actorOf(sender) })])
}
