import { and, desc, eq, gt, gte, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { packets } from '../../../db/schema.ts'
import type { Reader } from '../../base/context.ts'
import {
  belongsToChannel,
  canReadPacket,
  ofNodesSeenBy,
  type PacketPlace,
  seesNodes,
  type View,
} from '../../accounts/access/visible.ts'
import { enumName } from '../../../meshtastic/enum-name.ts'
import { PortNumSchema } from '../../../meshtastic/gen/ports_pb.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { kindOf } from '../../../meshtastic/payload/payload.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { type Range, rangeOf, walkBack } from '../../search/walk.ts'

export const packetSchema = z
  .object({
    id: z.int(),
    source: z.string().nullable().describe('The radio or broker that received it'),
    timestamp: timeField,
    packetId: z.int(),
    fromNodeNum: nodeNumField,
    fromNodeId: nodeIdField,
    toNodeNum: nodeNumField,
    toNodeId: nodeIdField,
    gateway: nodeNumField.nullable().describe('Gateway that published it to the broker'),
    channel: z.int().describe('Number as in GET /api/channels; for an undecrypted packet the hash in its header'),
    port: z.int().nullable().describe('Null: it could not be decrypted'),
    portName: z.string().nullable(),
    rxSnr: z.number().nullable(),
    rxRssi: z.int().nullable(),
    hopsAway: z.int().nullable(),
    hopLimit: z.int(),
    viaMqtt: z.boolean(),
    pkiEncrypted: z.boolean(),
    replayed: z.boolean().describe("Replayed from the radio's memory"),
    signed: z.boolean().describe("The sender's signature was verified (firmware 2.8)"),
    spoofSuspected: z
      .boolean()
      .describe(
        "Probably forged: another node seems to have sent it in its sender's name. It is only in the packet log",
      ),
    payload: z
      .looseObject({ kind: z.string() })
      .describe('Decoded payload, without hidden nodes; only its kind if the viewer may not read it'),
  })
  .meta({ id: 'Packet', description: 'An entry of the packet log' })
export type LoggedPacket = z.infer<typeof packetSchema>

export const packetPageSchema = z
  .object({
    packets: z.array(packetSchema),
    nextBefore: z.int().nullable().describe('`before` of the next page; null: this is the last one'),
  })
  .meta({ id: 'PacketPage' })

export type PacketPage = z.infer<typeof packetPageSchema>

export type PacketFilters = {
  readonly limit: number
  /** Id of a logged packet: only earlier ones. */
  readonly before?: number | undefined
  /** Id of a logged packet: only later ones. */
  readonly after?: number | undefined
  /** Time in milliseconds, inclusive. */
  readonly since?: number | undefined
  /** Time in milliseconds, exclusive. */
  readonly until?: number | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly port?: number | undefined
}

const fields = {
  id: packets.id,
  // A join would let SQLite begin at the sources and sort.
  source: sql<string | null>`(select name from sources where sources.id = ${packets.sourceId})`,
  timestamp: packets.t,
  packetId: packets.packetId,
  fromNodeNum: packets.fromNodeNum,
  toNodeNum: packets.toNodeNum,
  gateway: packets.gateway,
  channel: packets.channel,
  port: packets.port,
  rxSnr: packets.rxSnr,
  rxRssi: packets.rxRssi,
  hopsAway: packets.hopsAway,
  hopLimit: packets.hopLimit,
  viaMqtt: packets.viaMqtt,
  pkiEncrypted: packets.pkiEncrypted,
  replayed: packets.replayed,
  trustLevel: packets.trustLevel,
  payload: packets.payload,
}

/** Newest first, and the next cursor. The content of a packet is shown as far as the viewer may read it. */
export async function listPackets(
  { store, viewer }: Reader,
  { limit, before, after, since, until, from, to, port }: PacketFilters,
): Promise<PacketPage> {
  const read = (range: Range | null, count: number) =>
    store.db
      .select(fields)
      .from(packets)
      .where(
        and(
          range === null ? undefined : and(gte(packets.id, range.from), lt(packets.id, range.before)),
          before === undefined ? undefined : lt(packets.id, before),
          after === undefined ? undefined : gt(packets.id, after),
          since === undefined ? undefined : gte(packets.t, since),
          until === undefined ? undefined : lt(packets.t, until),
          from === undefined ? undefined : eq(packets.fromNodeNum, from),
          to === undefined ? undefined : eq(packets.toNodeNum, to),
          port === undefined ? undefined : eq(packets.port, port),
          viewer.view.hidden.size === 0
            ? undefined
            : ofNodesSeenBy(viewer.view, packets.fromNodeNum, packets.toNodeNum),
        ),
      )
      .orderBy(desc(packets.id))
      .limit(count)
      .all()
  const isIndexed = (since ?? until ?? to) === undefined && (from === undefined || port === undefined)
  const all = isIndexed ? null : await rangeOf(store, 'packets', before)
  const rows =
    all === null
      ? await read(null, limit + 1)
      : (
          await walkBack({
            store,
            ...all,
            from: Math.max(all.from, (after ?? 0) + 1),
            limit: limit + 1,
            read: async (range, count) => read(range, count),
          })
        ).found
  const page = rows.slice(0, limit).map(({ trustLevel, ...row }) => ({
    ...row,
    signed: trustLevel === 'signed',
    spoofSuspected: trustLevel === 'spoofed',
    fromNodeId: formatNodeId(row.fromNodeNum),
    toNodeId: formatNodeId(row.toNodeNum),
    portName: row.port === null ? null : enumName(PortNumSchema, row.port),
    gateway: seesNodes(viewer.view, [row.gateway]) ? row.gateway : null,
    payload: showPayload(viewer, row.payload, {
      channel: row.channel,
      from: row.fromNodeNum,
      to: row.toNodeNum,
      pkiEncrypted: row.pkiEncrypted,
      isOwn: trustLevel === 'own',
    }),
  }))
  return { packets: page, nextBefore: rows.length > limit ? (page.at(-1)?.id ?? null) : null }
}

const payloadSchema = z.looseObject({ kind: z.string() })

/** The repeated text of a channel. */
const replaySchema = z.object({ storeForward: z.object({ replay: z.object({ isDirect: z.literal(false) }) }) })

function showPayload(
  { permissions, view }: Reader['viewer'],
  json: string,
  { isOwn, ...place }: Omit<PacketPlace, 'isOfChannel'> & { readonly isOwn: boolean },
): LoggedPacket['payload'] {
  const payload = payloadSchema.parse(JSON.parse(json))
  const { about, mayBeOfItself } = kindOf(payload.kind)
  // Contents of messages need the permission to read messages, contents about nodes the permission to read nodes.
  const isPermitted = about === null || permissions[about].read
  // Nobody here could decrypt it, so there is nothing to read.
  if (payload.kind === 'encrypted') return payload
  const replay = replaySchema.safeParse(payload)
  const isOfChannel = belongsToChannel(payload.kind, replay.success)
  const isSeen = canReadPacket(view, { ...place, isOfChannel }, isOwn && mayBeOfItself === true)
  return isPermitted && isSeen ? withoutHidden(view, payload) : { kind: payload.kind }
}

const hops = z.array(z.int().nullable())
const namingSchema = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('traceroute'), route: z.looseObject({ route: hops, routeBack: hops }) }),
  z.looseObject({
    kind: z.literal('neighborinfo'),
    nodeNum: z.int(),
    neighbors: z.array(z.looseObject({ nodeNum: z.int() })),
  }),
  z.looseObject({ kind: z.literal('waypoint'), waypoint: z.looseObject({ lockedTo: z.int().nullable() }) }),
])
/** The kinds of payload that name other nodes. */
const NAMING: ReadonlySet<string> = new Set(namingSchema.options.map(({ shape }) => shape.kind.value))

/** Hidden nodes have no number in it, as in the lists of routes, neighbours and waypoints. */
function withoutHidden(view: View, payload: LoggedPacket['payload']): LoggedPacket['payload'] {
  if (view.hidden.size === 0 || !NAMING.has(payload.kind)) return payload
  const named = namingSchema.parse(payload)
  const shown = (num: number | null) => (seesNodes(view, [num]) ? num : null)
  switch (named.kind) {
    case 'traceroute': {
      const { route, routeBack } = named.route
      return { ...named, route: { ...named.route, route: route.map(shown), routeBack: routeBack.map(shown) } }
    }
    case 'neighborinfo': {
      const neighbors = named.neighbors.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
      return { ...named, nodeNum: shown(named.nodeNum), neighbors }
    }
    case 'waypoint':
      return { ...named, waypoint: { ...named.waypoint, lockedTo: shown(named.waypoint.lockedTo) } }
    default:
      return named satisfies never
  }
}
