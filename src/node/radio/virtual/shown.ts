import { clone, create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { blur } from '../../../app/accounts/access/blur.ts'
import { belongsToChannel } from '../../../app/accounts/access/visible.ts'
import { readText } from '../../../app/mesh/heard/contents.ts'
import { type NodeInfo, NodeInfoSchema } from '../../../meshtastic/gen/node_pb.ts'
import { type Data, type MeshPacket, MeshPacketSchema } from '../../../meshtastic/gen/packet_pb.ts'
import { NeighborInfoSchema, type RouteDiscovery, RouteDiscoverySchema } from '../../../meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { type Position, PositionSchema } from '../../../meshtastic/gen/position_pb.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { decodePacket, type Packet } from '../../../meshtastic/packet.ts'
import { mayHoldSecrets } from '../../../meshtastic/payload/payload.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import type { Resource } from '../../../shared/access/resources.ts'
import type { CopiedNode, Whence } from './copy.ts'
import type { Sight } from './sight.ts'

// What an app sees of the packets and nodes of the radio: as much as the viewer of its port.

/** Units of a coordinate in the protocol: 1e-7 degrees. */
const UNITS = 1e7

type About = {
  /** The radio's own number. */
  readonly own: number
  /** One of our apps or pages sent it through the radio. */
  readonly isSent: boolean
  readonly sharesChannelKeys: boolean
  /** In milliseconds. */
  readonly now: number
}

/** Ports that are for this service alone, or for simulations. */
const NEVER: ReadonlySet<PortNum> = new Set([PortNum.SIMULATOR_APP])

/** A packet as the viewer may see it; null: not at all. */
export function showPacket(packet: MeshPacket, sight: Sight, about: About): MeshPacket | null {
  const { from, to, payloadVariant } = packet
  if (!sight.seesNode(from) || !sight.seesNode(to)) return null
  const { permissions, view } = sight.viewer
  if (payloadVariant.case !== 'decoded') {
    return permissions.info.read && canReadChannel(view, UNKNOWN_CHANNEL) ? packet : null
  }
  const data = payloadVariant.value
  if (mayHoldSecrets(data.portnum) || NEVER.has(data.portnum)) return null
  // An invitation carries the key of the channel that it offers.
  if (data.portnum === PortNum.MESH_BEACON_APP && !about.sharesChannelKeys) return null
  const read = decodePacket(packet, about.now)
  if (!permissions[neededFor(read)].read) return null
  const isText = readText(read) !== null
  const isReplayOfChannel = read.payload.kind === 'storeforward' && read.payload.storeForward.replay?.isDirect === false
  const isOfChannel = belongsToChannel(read.payload.kind, isReplayOfChannel)
  const isOwn = from === about.own && read.rssi === null && !about.isSent
  if (!sight.canReadContent(read, { isOwn, isText, isOfChannel })) return null
  const shown = showData(data, sight)
  return shown === data
    ? packet
    : { ...clone(MeshPacketSchema, packet), payloadVariant: { case: 'decoded', value: shown } }
}

function neededFor({ payload: { kind } }: Packet): Resource {
  if (kind === 'text' || kind === 'storeforward' || kind === 'rangetest') return 'messages'
  return kind === 'traceroute' || kind === 'neighborinfo' || kind === 'telemetry' ? 'info' : 'nodes'
}

/** The content without the nodes that are hidden from the viewer, and with positions rounded as for the viewer. */
function showData(data: Data, sight: Sight): Data {
  const { view, precisionBits } = sight.viewer
  switch (data.portnum) {
    case PortNum.POSITION_APP:
      return precisionBits === null
        ? data
        : reencode(data, PositionSchema, (position) => round(position, precisionBits))
    case PortNum.TRACEROUTE_APP:
      return view.hidden.size === 0 ? data : reencode(data, RouteDiscoverySchema, (route) => maskRoute(route, sight))
    case PortNum.NEIGHBORINFO_APP:
      if (view.hidden.size === 0) return data
      return reencode(data, NeighborInfoSchema, (info) => ({
        ...info,
        lastSentById: sight.seesNode(info.lastSentById) ? info.lastSentById : 0,
        neighbors: info.neighbors.filter(({ nodeId }) => sight.seesNode(nodeId)),
      }))
    default:
      return data
  }
}

function reencode<Desc extends DescMessage>(
  data: Data,
  schema: Desc,
  change: (message: MessageShape<Desc>) => MessageShape<Desc>,
): Data {
  return { ...data, payload: toBinary(schema, change(readOrEmpty(schema, data.payload))) }
}

function readOrEmpty<Desc extends DescMessage>(schema: Desc, payload: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(schema, payload)
  } catch {
    return create(schema)
  }
}

/** The number of a node that could not be read, on a route. */
function maskRoute(route: RouteDiscovery, sight: Sight): RouteDiscovery {
  const mask = (nums: readonly number[]) => nums.map((nodeNum) => (sight.seesNode(nodeNum) ? nodeNum : BROADCAST))
  return { ...route, route: mask(route.route), routeBack: mask(route.routeBack) }
}

function round(position: Position, bits: number): Position {
  const { latitudeI, longitudeI, precisionBits } = position
  if (latitudeI === undefined || longitudeI === undefined) return create(PositionSchema)
  const place = { latitude: latitudeI / UNITS, longitude: longitudeI / UNITS, altitude: null, precisionBits }
  const blurred = blur(place, bits)
  return create(PositionSchema, {
    latitudeI: Math.round(blurred.latitude * UNITS),
    longitudeI: Math.round(blurred.longitude * UNITS),
    precisionBits: blurred.precisionBits ?? bits,
    time: position.time,
  })
}

const isSeenBy = (sight: Sight, nodeNum: number) => sight.seesNode(nodeNum) && sight.isListed(nodeNum)

/** Whether a node of the radio's list is shown. An app cannot do without the radio that it is connected to. */
export function isShown(nodeNum: number, sight: Sight, own: number): boolean {
  return nodeNum === own || isSeenBy(sight, nodeNum)
}

/** A node that is shown, as far as the viewer may see it. */
export function showNode({ info, position, metrics }: CopiedNode, sight: Sight, own: number): NodeInfo {
  const isOwn = info.num === own
  const isSeen = isSeenBy(sight, info.num)
  const { precisionBits, permissions } = sight.viewer
  const shown = clone(NodeInfoSchema, info)
  if (!isSeen || !canReadWhence(position, sight, info.num)) delete shown.position
  if (!isSeen || !canReadWhence(metrics, sight, info.num) || !permissions.info.read) delete shown.deviceMetrics
  if (precisionBits !== null && shown.position !== undefined) shown.position = round(shown.position, precisionBits)
  if (!sight.canReadSlot(shown.channel)) shown.channel = 0
  if (isOwn) {
    delete shown.hopsAway
    shown.isFavorite = true
  }
  return shown
}

/** A radio does not remember on which channel it heard something. */
function canReadWhence(whence: Whence, sight: Sight, from: number): boolean {
  if (whence === 'own') return true
  if (whence === 'memory') return canReadChannel(sight.viewer.view, UNKNOWN_CHANNEL)
  const packet = { ...whence, from }
  return sight.canReadContent(packet, { isOwn: false, isText: false, isOfChannel: false })
}
