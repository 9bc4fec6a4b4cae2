import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { AdminMessageSchema } from '../../../meshtastic/gen/admin_pb.ts'
import {
  type Data,
  type DataSchema,
  type MeshPacket,
  MeshPacket_TransportMechanism,
} from '../../../meshtastic/gen/packet_pb.ts'
import {
  NeighborInfoSchema,
  RouteDiscoverySchema,
  Routing_Error,
  RoutingSchema,
  UserSchema,
} from '../../../meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../../meshtastic/gen/position_pb.ts'
import { type FromRadio, FromRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import { TelemetrySchema } from '../../../meshtastic/gen/telemetry_pb.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { createPacketIds } from '../../../meshtastic/link/to-radio.ts'
import { createDemoNodes, DEMO_CHAT, type DemoNode } from './mesh.ts'
import { createDemoSettings, type DemoSettings } from './settings.ts'
import { HOUR_MS } from '../../../shared/time.ts'

type DataInit = Exclude<MessageInitShape<typeof DataSchema>, Data>
type TelemetryInit = MessageInitShape<typeof TelemetrySchema>
type Variant = NonNullable<Exclude<MessageInitShape<typeof FromRadioSchema>, FromRadio>['payloadVariant']>

/** An encoded FromRadio, and its delay after its cause, in milliseconds. */
export type DemoAnswer = { readonly afterMs: number; readonly payload: Uint8Array }

/** The mesh's reaction to a packet of ours. `restarts`: the radio saves its settings, disconnects and restarts. */
export type DemoReaction = { readonly answers: readonly DemoAnswer[]; readonly restarts: boolean }

/** A simulated radio in a simulated mesh. Everything it reports follows from the numbers of `random` and from `now`. */
export type DemoRadio = {
  /** Answer to `want_config_id`. */
  describe(nonce: number): Uint8Array[]
  /** The next packet from the mesh. */
  hear(): Uint8Array
  queueStatus(packetId: number): Uint8Array
  react(packet: MeshPacket): DemoReaction
}

export function createDemoRadio(random: () => number, now: () => number): DemoRadio {
  const nodes = createDemoNodes(random, now())
  const [own] = nodes
  const others = nodes.slice(1)
  const settings = own === undefined ? null : createDemoSettings(own)
  const nextId = createPacketIds(random)
  const pick = (from: readonly DemoNode[]): DemoNode | undefined => from[Math.floor(random() * from.length)]
  let line = 0
  let lastTextId = 0

  const packet = (from: DemoNode, data: DataInit, to = BROADCAST): Uint8Array => {
    const id = nextId()
    if (data.portnum === PortNum.TEXT_MESSAGE_APP) lastTextId = id
    const arrival = from === own ? {} : describeArrival(from, random)
    const payloadVariant = { case: 'decoded', value: data } as const
    return encode({
      case: 'packet',
      value: { from: from.nodeNum, to, id, rxTime: seconds(now()), ...arrival, payloadVariant },
    })
  }
  const chat = (): DataInit => {
    const text = DEMO_CHAT[line % DEMO_CHAT.length] ?? ''
    line += 1
    const isReaction = /^\p{Extended_Pictographic}$/u.test(text) && lastTextId !== 0
    const payload = new TextEncoder().encode(text)
    return { portnum: PortNum.TEXT_MESSAGE_APP, payload, ...(isReaction ? { emoji: 1, replyId: lastTextId } : {}) }
  }
  const say = (node: DemoNode): DataInit => {
    const dice = random()
    if (dice < 0.16) return chat()
    if (dice < 0.5) return describePlace(node, now())
    if (dice < 0.62) return describeUser(node)
    if (dice < 0.67) return describeNeighbors(node, nodes)
    if (node.hasWeather && dice < 0.85) return describeWeather(random, now())
    return describeDevice(node, random, now())
  }
  return {
    describe: (nonce) => (settings === null ? [] : describeRadio(nodes, settings, { random, now: now(), nonce })),
    queueStatus: (meshPacketId) => encode({ case: 'queueStatus', value: { free: 16, maxlen: 16, meshPacketId } }),
    hear() {
      const node = (random() < 0.06 ? own : pick(others)) ?? own
      if (node === undefined) return new Uint8Array(0)
      age(node, random)
      return packet(node, node === own ? describeDevice(node, random, now()) : say(node))
    },
    react(sent) {
      const data = sent.payloadVariant.case === 'decoded' ? sent.payloadVariant.value : null
      if (own === undefined || data === null) return { answers: [], restarts: false }
      const acknowledged = (afterMs: number) => ({ afterMs, payload: packet(own, acknowledge(sent.id), own.nodeNum) })
      if (data.portnum === PortNum.ADMIN_APP) mark(nodes, data.payload)
      const set = settings?.take(sent) ?? null
      if (set !== null) return { answers: [acknowledged(50)], restarts: set.ends }
      if (data.portnum === PortNum.TRACEROUTE_APP && sent.to === BROADCAST) {
        const inRange = others.filter(({ hopsAway }) => hopsAway === 0)
        const answers = inRange.map((node, index) => ({
          afterMs: 1500 + index * 400,
          payload: packet(node, answerDirect(node, random, sent.id), own.nodeNum),
        }))
        return { answers, restarts: false }
      }
      const target = others.find(({ nodeNum }) => nodeNum === sent.to)
      const answer = target === undefined ? null : answerTo(data, target, own, { id: sent.id, random, now: now() })
      const answers = [
        ...(sent.wantAck ? [acknowledged(1200)] : []),
        ...(target === undefined || answer === null
          ? []
          : [{ afterMs: 3500, payload: packet(target, answer, own.nodeNum) }]),
      ]
      return { answers, restarts: false }
    },
  }
}

function encode(payloadVariant: Variant): Uint8Array {
  return toBinary(FromRadioSchema, create(FromRadioSchema, { payloadVariant }))
}

function seconds(now: number): number {
  return Math.floor(now / 1000)
}

/** Applies the passing of time: batteries discharge and charge, walkers walk. */
function age(node: DemoNode, random: () => number): void {
  node.battery = Math.min(100, Math.max(8, node.battery + Math.round((random() - 0.5) * 3)))
  if (!node.isMoving) return
  node.latitude += (random() - 0.5) * 0.003
  node.longitude += (random() - 0.5) * 0.004
}

function describeArrival(node: DemoNode, random: () => number) {
  return {
    hopStart: 3,
    hopLimit: 3 - node.hopsAway,
    rxSnr: Math.round((node.snr + (random() - 0.5) * 4) * 4) / 4,
    rxRssi: Math.round(-70 - node.hopsAway * 12 - random() * 25),
    relayNode: node.nodeNum & 0xff,
    transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_LORA,
  }
}

function userOf(node: DemoNode) {
  const { longName, shortName, hwModel, role, publicKey } = node
  return { id: formatNodeId(node.nodeNum), longName, shortName, hwModel, role, publicKey }
}

function placeOf(node: DemoNode, now: number) {
  const cell = 2 ** (32 - node.precisionBits)
  const toWire = (degrees: number) => Math.round(Math.round(degrees * 1e7) / cell) * cell
  return {
    latitudeI: toWire(node.latitude),
    longitudeI: toWire(node.longitude),
    altitude: node.altitude,
    time: seconds(now),
    precisionBits: node.precisionBits,
    satsInView: 9,
  }
}

function metricsOf(node: DemoNode, random: () => number, now: number) {
  const batteryLevel = node.isPowered ? 101 : node.battery
  return {
    batteryLevel,
    voltage: node.isPowered ? 4.2 : 3.3 + node.battery * 0.0085,
    channelUtilization: 6 + random() * 9,
    airUtilTx: 0.4 + random() * 1.6,
    uptimeSeconds: seconds(now - node.bootedAt),
  }
}

function describePlace(node: DemoNode, now: number): DataInit {
  const payload = toBinary(PositionSchema, create(PositionSchema, placeOf(node, now)))
  return { portnum: PortNum.POSITION_APP, payload }
}

function describeUser(node: DemoNode): DataInit {
  return { portnum: PortNum.NODEINFO_APP, payload: toBinary(UserSchema, create(UserSchema, userOf(node))) }
}

function describeTelemetry(telemetry: TelemetryInit): DataInit {
  return { portnum: PortNum.TELEMETRY_APP, payload: toBinary(TelemetrySchema, create(TelemetrySchema, telemetry)) }
}

function describeDevice(node: DemoNode, random: () => number, now: number): DataInit {
  const value = metricsOf(node, random, now)
  return describeTelemetry({ time: seconds(now), variant: { case: 'deviceMetrics', value } })
}

/** A temperate day: warmest in the afternoon. */
function describeWeather(random: () => number, now: number): DataInit {
  const warmth = Math.sin(((now / HOUR_MS - 9) / 24) * 2 * Math.PI)
  const value = {
    temperature: 14 + warmth * 6 + random(),
    relativeHumidity: 62 - warmth * 15 + random() * 4,
    barometricPressure: 1013 + Math.sin(now / 1.1e8) * 9 + random() * 0.3,
  }
  return describeTelemetry({ time: seconds(now), variant: { case: 'environmentMetrics', value } })
}

function describeNeighbors(node: DemoNode, nodes: readonly DemoNode[]): DataInit {
  const near = nodes.filter((other) => other !== node && Math.abs(other.hopsAway - node.hopsAway) <= 1)
  const neighbors = near.slice(0, 5).map(({ nodeNum, snr }) => ({ nodeId: nodeNum, snr: Math.round(snr * 4) / 4 }))
  const info = { nodeId: node.nodeNum, lastSentById: node.nodeNum, nodeBroadcastIntervalSecs: 14_400, neighbors }
  return { portnum: PortNum.NEIGHBORINFO_APP, payload: toBinary(NeighborInfoSchema, create(NeighborInfoSchema, info)) }
}

function acknowledge(requestId: number): DataInit {
  const routing = create(RoutingSchema, { variant: { case: 'errorReason', value: Routing_Error.NONE } })
  return { portnum: PortNum.ROUTING_APP, payload: toBinary(RoutingSchema, routing), requestId }
}

type Request = { readonly id: number; readonly random: () => number; readonly now: number }

function answerTo(data: Data, target: DemoNode, own: DemoNode, { id, random, now }: Request): DataInit {
  if (data.portnum === PortNum.TRACEROUTE_APP) {
    const snr = Array.from({ length: target.hopsAway + 1 }, () => Math.round((random() * 16 - 6) * 4))
    const route = Array.from({ length: target.hopsAway }, (_, index) => own.nodeNum + (index + 1) * 0x0101)
    const found = { route, snrTowards: snr, routeBack: route.toReversed(), snrBack: snr.toReversed() }
    const payload = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, found))
    return { portnum: PortNum.TRACEROUTE_APP, payload, requestId: id }
  }
  if (data.portnum === PortNum.NODEINFO_APP) return { ...describeUser(target), requestId: id }
  if (data.portnum === PortNum.POSITION_APP) return { ...describePlace(target, now), requestId: id }
  if (data.portnum === PortNum.TELEMETRY_APP) return { ...describeDevice(target, random, now), requestId: id }
  return acknowledge(id)
}

/** A node that hears a traceroute to all adds itself and how well it hears. */
function answerDirect({ nodeNum, snr }: DemoNode, random: () => number, requestId: number): DataInit {
  const found = { route: [nodeNum], snrTowards: [Math.round((snr + (random() - 0.5) * 6) * 4)] }
  const payload = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, found))
  return { portnum: PortNum.TRACEROUTE_APP, payload, requestId }
}

/** Follows an order to mark a node, as the owner's app gives it. */
function mark(nodes: readonly DemoNode[], payload: Uint8Array): void {
  const { case: variant, value } = fromBinary(AdminMessageSchema, payload).payloadVariant
  const node = nodes.find(({ nodeNum }) => nodeNum === value)
  if (node === undefined) return
  if (variant === 'setFavoriteNode' || variant === 'removeFavoriteNode') node.isFavorite = variant === 'setFavoriteNode'
  if (variant === 'toggleMutedNode') node.isMuted = !node.isMuted
  if (variant === 'setIgnoredNode' || variant === 'removeIgnoredNode') node.isIgnored = variant === 'setIgnoredNode'
}

type Telling = { readonly random: () => number; readonly now: number; readonly nonce: number }

function describeRadio(
  nodes: readonly DemoNode[],
  settings: DemoSettings,
  { random, now, nonce }: Telling,
): Uint8Array[] {
  const [own] = nodes
  if (own === undefined) return []
  const { nodeNum: myNodeNum, role, hwModel } = own
  const rebootCount = settings.startCount()
  return [
    encode({ case: 'myInfo', value: { myNodeNum, nodedbCount: nodes.length, rebootCount } }),
    encode({ case: 'metadata', value: { firmwareVersion: '2.7.26.demo', role, hwModel, hasWifi: true, hasPKC: true } }),
    ...settings.describe(),
    ...nodes.map((node) => encode({ case: 'nodeInfo', value: describeEntry(node, node === own, random, now) })),
    encode({ case: 'configCompleteId', value: nonce }),
  ]
}

function describeEntry(node: DemoNode, isOwn: boolean, random: () => number, now: number) {
  return {
    num: node.nodeNum,
    user: userOf(node),
    position: placeOf(node, now),
    deviceMetrics: metricsOf(node, random, now),
    isFavorite: node.isFavorite,
    isIgnored: node.isIgnored,
    isMuted: node.isMuted,
    lastHeard: seconds(now - (isOwn ? 0 : random() * HOUR_MS)),
    ...(isOwn ? {} : { snr: node.snr, hopsAway: node.hopsAway }),
  }
}
