import { type DescMessage, fromBinary, isFieldSet, type MessageShape } from '@bufbuild/protobuf'
import { parseDeviceTime } from '../device-time.ts'
import { enumName } from '../enum-name.ts'
import {
  Config_LoRaConfig_ModemPresetSchema as ModemPresetSchema,
  Config_LoRaConfig_RegionCode as RegionCode,
  Config_LoRaConfig_RegionCodeSchema as RegionCodeSchema,
} from '../gen/config_pb.ts'
import { MapReportSchema } from '../gen/mqtt_pb.ts'
import type { Data } from '../gen/packet_pb.ts'
import * as wire from '../gen/payloads_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { PositionSchema } from '../gen/position_pb.ts'
import { TelemetrySchema } from '../gen/telemetry_pb.ts'
import { decodeMapReport, type MapReport } from './map-report.ts'
import { decodeCoordinates, decodePosition, isOffGlobe, type PositionFix, sentTimeOf } from './position.ts'
import { decodeRoute, type Route } from './route.ts'
import { decodeStoreForward, type StoreForward } from './store-forward.ts'
import { listMetrics, type Metric } from './telemetry.ts'
import { decodeUser, type NodeUser, withoutCut } from './user.ts'
import { isNameOf } from '../../shared/names.ts'

/** The content of a packet. Times are milliseconds since the epoch. */
export type Payload =
  /** `origin` distinguishes a person's message from a sensor's or an alert. Bytes that are not UTF-8 become U+FFFD. */
  | { readonly kind: 'text'; readonly text: string; readonly origin: 'message' | 'detection' | 'alert' }
  /** A numbered text that a radio sends by itself to test its range. */
  | { readonly kind: 'rangetest'; readonly text: string }
  /**
   * `fix` null: no coordinates, or impossible ones (`isOffGlobe`). That never clears a known position. `sentTime`: when
   * it was sent, if that is known and is not the time of the fix.
   */
  | {
      readonly kind: 'position'
      readonly fix: PositionFix | null
      readonly isOffGlobe?: true
      readonly sentTime?: number
    }
  | { readonly kind: 'nodeinfo'; readonly user: NodeUser }
  | {
      readonly kind: 'telemetry'
      readonly variant: string | null
      readonly time: number | null
      readonly metrics: readonly Metric[]
    }
  /** Answer to the packet `requestId`: `NONE` is an acknowledgement, other names are failures. */
  | { readonly kind: 'routing'; readonly error: string; readonly errorCode: number }
  /** Without `requestId` it is an overheard request, not a result. */
  | { readonly kind: 'traceroute'; readonly isReply: boolean; readonly route: Route }
  | { readonly kind: 'neighborinfo'; readonly nodeNum: number; readonly neighbors: readonly Neighbor[] }
  | { readonly kind: 'waypoint'; readonly waypoint: Waypoint }
  | { readonly kind: 'storeforward'; readonly storeForward: StoreForward }
  | { readonly kind: 'paxcounter'; readonly wifi: number; readonly ble: number; readonly uptimeSeconds: number }
  /** A line of text that the node's owner shows to others; empty: withdrawn. Null: no radio can send it. */
  | { readonly kind: 'status'; readonly status: string | null }
  | { readonly kind: 'mapreport'; readonly report: MapReport }
  | ({ readonly kind: 'beacon' } & Beacon)
  /** May hold keys and passwords, so it is not decoded and its bytes are not kept. */
  | { readonly kind: 'admin' }
  /** The radio had no key for it. */
  | { readonly kind: 'encrypted' }
  | { readonly kind: 'unknown' }
  /** The bytes do not decode as the message of this known port. */
  | { readonly kind: 'malformed' }

/** `snr` in dB. */
export type Neighbor = { readonly nodeNum: number; readonly snr: number }

export type Waypoint = {
  readonly id: number
  readonly latitude: number | null
  readonly longitude: number | null
  /** Null: never. A time in the past deletes the waypoint. */
  readonly expiresAt: number | null
  /** The only node that may change it; null: any node may. */
  readonly lockedTo: number | null
  readonly name: string
  readonly description: string
  /** One emoji. */
  readonly icon: string | null
}

/**
 * An invitation to a mesh (firmware 2.8). Everybody who hears it learns the key of the offered channel, but it is a key:
 * only whether there is one is kept.
 */
export type Beacon = {
  readonly message: string
  /** Of the offered channel; empty: it is named after its preset. */
  readonly channelName: string | null
  readonly hasKey: boolean
  /** Names as in the settings, such as `EU_868` and `LONG_FAST`. */
  readonly region: string | null
  readonly preset: string | null
}

/** What is known about a port of Meshtastic. */
type Port = {
  /** What its bytes are: a message of this schema, or text in UTF-8; null: it is not checked. */
  readonly content: DescMessage | 'text' | null
  decode(data: Data, now: number): Payload
  /** Packets with keys, passwords, or what somebody types into a remote shell: their bytes are not stored. */
  readonly mayHoldSecrets?: true
  /** Firmware 2.8 sends the latest of each node again, out of its memory, when somebody connects. */
  readonly isSentFromMemory?: true
}

/** All ports that are decoded or treated in some other special way. */
const PORTS: ReadonlyMap<PortNum, Port> = new Map<PortNum, Port>([
  [PortNum.TEXT_MESSAGE_APP, { content: 'text', decode: (data) => decodeText(data, 'message') }],
  [PortNum.DETECTION_SENSOR_APP, { content: 'text', decode: (data) => decodeText(data, 'detection') }],
  [PortNum.ALERT_APP, { content: 'text', decode: (data) => decodeText(data, 'alert') }],
  [
    PortNum.RANGE_TEST_APP,
    { content: 'text', decode: ({ payload }) => ({ kind: 'rangetest', text: new TextDecoder().decode(payload) }) },
  ],
  [
    PortNum.POSITION_APP,
    {
      ...portOf(PositionSchema, (position, _data, now) => ({
        kind: 'position',
        fix: decodePosition(position, now),
        ...(isOffGlobe(position) ? { isOffGlobe: true } : {}),
        ...sentTimeOf(position, now),
      })),
      isSentFromMemory: true,
    },
  ],
  [PortNum.NODEINFO_APP, portOf(wire.UserSchema, (user) => ({ kind: 'nodeinfo', user: decodeUser(user) }))],
  [
    PortNum.TELEMETRY_APP,
    {
      ...portOf(TelemetrySchema, (telemetry, _data, now) => ({
        kind: 'telemetry',
        variant: telemetry.variant.case ?? null,
        time: parseDeviceTime(telemetry.time, now),
        metrics: listMetrics(telemetry),
      })),
      isSentFromMemory: true,
    },
  ],
  [PortNum.ROUTING_APP, portOf(wire.RoutingSchema, decodeRouting)],
  [
    PortNum.TRACEROUTE_APP,
    portOf(wire.RouteDiscoverySchema, (route, { requestId }) => ({
      kind: 'traceroute',
      isReply: requestId !== 0,
      route: decodeRoute(route),
    })),
  ],
  [PortNum.NEIGHBORINFO_APP, portOf(wire.NeighborInfoSchema, decodeNeighbors)],
  [
    PortNum.WAYPOINT_APP,
    portOf(wire.WaypointSchema, (waypoint) => ({ kind: 'waypoint', waypoint: decodeWaypoint(waypoint) })),
  ],
  [
    PortNum.STORE_FORWARD_APP,
    portOf(wire.StoreAndForwardSchema, (message) => ({
      kind: 'storeforward',
      storeForward: decodeStoreForward(message),
    })),
  ],
  [
    PortNum.PAXCOUNTER_APP,
    portOf(wire.PaxcountSchema, ({ wifi, ble, uptime }) => ({ kind: 'paxcounter', wifi, ble, uptimeSeconds: uptime })),
  ],
  [
    PortNum.NODE_STATUS_APP,
    {
      ...portOf(wire.StatusMessageSchema, ({ status }) => ({ kind: 'status', status: withoutCut(status) })),
      isSentFromMemory: true,
    },
  ],
  [
    PortNum.MAP_REPORT_APP,
    portOf(MapReportSchema, (report) => ({ kind: 'mapreport', report: decodeMapReport(report) })),
  ],
  [PortNum.MESH_BEACON_APP, portOf(wire.MeshBeaconSchema, (beacon) => ({ kind: 'beacon', ...decodeBeacon(beacon) }))],
  [PortNum.ADMIN_APP, { content: null, decode: () => ({ kind: 'admin' }), mayHoldSecrets: true }],
  [PortNum.REMOTE_SHELL_APP, { content: null, decode: () => ({ kind: 'unknown' }), mayHoldSecrets: true }],
])

/** A port whose bytes are a message of one schema. */
function portOf<Desc extends DescMessage>(
  schema: Desc,
  read: (message: MessageShape<Desc>, data: Data, now: number) => Payload,
): Port {
  return { content: schema, decode: (data, now) => read(fromBinary(schema, data.payload), data, now) }
}

type Kind = { readonly about: 'messages' | 'nodes' | null; readonly mayBeOfItself?: true }

/**
 * Each kind of payload. `about`: it contains what people write, or what a node says about itself; what is unreadable may
 * contain the former. `mayBeOfItself`: a radio may report it about itself, whichever channel it uses.
 */
const KINDS: Readonly<Record<Payload['kind'], Kind>> = {
  text: { about: 'messages' },
  rangetest: { about: 'messages' },
  position: { about: 'nodes', mayBeOfItself: true },
  nodeinfo: { about: 'nodes', mayBeOfItself: true },
  telemetry: { about: null, mayBeOfItself: true },
  routing: { about: null },
  traceroute: { about: null },
  neighborinfo: { about: null },
  waypoint: { about: 'nodes' },
  storeforward: { about: 'messages' },
  paxcounter: { about: null },
  status: { about: 'nodes', mayBeOfItself: true },
  mapreport: { about: 'nodes', mayBeOfItself: true },
  beacon: { about: 'messages' },
  admin: { about: null },
  encrypted: { about: null },
  unknown: { about: 'messages' },
  malformed: { about: 'messages' },
}

/** What is known about a kind of payload, also if another version stored it. */
export function kindOf(kind: string): Kind {
  return isNameOf(KINDS, kind) ? KINDS[kind] : { about: null }
}

/** Whether packets of a port contain keys, passwords or what somebody types: their bytes are not stored. */
export function mayHoldSecrets(port: PortNum): boolean {
  return PORTS.get(port)?.mayHoldSecrets === true
}

/** Whether a radio sends packets of a port again, out of its memory. */
export function isSentFromMemory(port: PortNum): boolean {
  return PORTS.get(port)?.isSentFromMemory === true
}

/** What the bytes of a port are: a message of this schema, or text; null: unknown. */
export function contentOf(port: PortNum): DescMessage | 'text' | null {
  return PORTS.get(port)?.content ?? null
}

/** Never throws. `now` is the time of receipt, in milliseconds. */
export function decodePayload(data: Data, now: number): Payload {
  try {
    return PORTS.get(data.portnum)?.decode(data, now) ?? { kind: 'unknown' }
  } catch {
    return { kind: 'malformed' }
  }
}

function decodeText(data: Data, origin: 'message' | 'detection' | 'alert'): Payload {
  return { kind: 'text', text: new TextDecoder().decode(data.payload), origin }
}

/** An acknowledgement is either error 0 or an empty message. A route inside Routing says nothing about delivery. */
function decodeRouting({ variant }: wire.Routing): Payload {
  if (variant.case === 'routeRequest' || variant.case === 'routeReply') return { kind: 'unknown' }
  const errorCode = variant.value ?? wire.Routing_Error.NONE
  return { kind: 'routing', error: enumName(wire.Routing_ErrorSchema, errorCode), errorCode }
}

function decodeNeighbors(info: wire.NeighborInfo): Payload {
  const neighbors = info.neighbors.map(({ nodeId, snr }) => ({ nodeNum: nodeId, snr }))
  return { kind: 'neighborinfo', nodeNum: info.nodeId, neighbors: neighbors.filter(({ nodeNum }) => nodeNum !== 0) }
}

function decodeBeacon(beacon: wire.MeshBeacon): Beacon {
  const { message, offerChannel, offerRegion, offerPreset } = beacon
  const isPreset = isFieldSet(beacon, wire.MeshBeaconSchema.field.offerPreset)
  return {
    message: withoutCut(message),
    channelName: offerChannel === undefined ? null : withoutCut(offerChannel.name),
    hasKey: (offerChannel?.psk.length ?? 0) > 0,
    region: offerRegion === RegionCode.UNSET ? null : enumName(RegionCodeSchema, offerRegion),
    preset: isPreset ? enumName(ModemPresetSchema, offerPreset) : null,
  }
}

function decodeWaypoint(waypoint: wire.Waypoint): Waypoint {
  const { latitudeI, longitudeI } = wire.WaypointSchema.field
  const isPlaced = isFieldSet(waypoint, latitudeI) && isFieldSet(waypoint, longitudeI)
  const place = isPlaced ? decodeCoordinates(waypoint.latitudeI, waypoint.longitudeI) : null
  const isSurrogate = waypoint.icon >= 0xd800 && waypoint.icon <= 0xdfff
  const isCharacter = waypoint.icon > 0 && waypoint.icon <= 0x10ffff && !isSurrogate
  return {
    id: waypoint.id,
    latitude: place?.latitude ?? null,
    longitude: place?.longitude ?? null,
    // Apps write the latest time that they can show for a waypoint without an end.
    expiresAt: waypoint.expire === 0 || waypoint.expire === 0x7fffffff ? null : waypoint.expire * 1000,
    lockedTo: waypoint.lockedTo || null,
    name: waypoint.name,
    description: waypoint.description,
    icon: isCharacter ? String.fromCodePoint(waypoint.icon) : null,
  }
}
