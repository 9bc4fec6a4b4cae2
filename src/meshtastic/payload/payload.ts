import { type DescMessage, fromBinary, isFieldSet, type MessageShape } from '@bufbuild/protobuf'
import { parseDeviceTime } from '../device-time.ts'
import { enumName } from '../enum-name.ts'
import { MapReportSchema } from '../gen/mqtt_pb.ts'
import type { Data } from '../gen/packet_pb.ts'
import * as wire from '../gen/payloads_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { PositionSchema } from '../gen/position_pb.ts'
import { TelemetrySchema } from '../gen/telemetry_pb.ts'
import { decodeMapReport, type MapReport } from './map-report.ts'
import { decodeCoordinates, decodePosition, isOffGlobe, type PositionFix } from './position.ts'
import { decodeRoute, type Route } from './route.ts'
import { decodeStoreForward, type StoreForward } from './store-forward.ts'
import { listMetrics, type Metric } from './telemetry.ts'
import { decodeUser, type NodeUser, withoutCut } from './user.ts'

/** The content of a packet. Times are milliseconds since the epoch. */
export type Payload =
  /** `origin` distinguishes a person's message from a sensor's or an alert. Bytes that are not UTF-8 become U+FFFD. */
  | { readonly kind: 'text'; readonly text: string; readonly origin: 'message' | 'detection' | 'alert' }
  /** A numbered text that a radio sends by itself, to see how far it reaches. */
  | { readonly kind: 'rangetest'; readonly text: string }
  /** `fix` null: no coordinates, or impossible ones (`isOffGlobe`). That never clears a known position. */
  | { readonly kind: 'position'; readonly fix: PositionFix | null; readonly isOffGlobe?: true }
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
  /** What the node's owner wants others to know, in one line; empty: nothing any more. Null: no radio can send it. */
  | { readonly kind: 'status'; readonly status: string | null }
  | { readonly kind: 'mapreport'; readonly report: MapReport }
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
 * Administration packets contain keys and passwords, and a remote shell contains what is typed. Their bytes are not
 * stored.
 */
export function mayHoldSecrets(port: PortNum): boolean {
  return port === PortNum.ADMIN_APP || port === PortNum.REMOTE_SHELL_APP
}

/** Never throws. `now` is the time of receipt, in milliseconds. */
export function decodePayload(data: Data, now: number): Payload {
  try {
    return decodeByPort(data, now)
  } catch {
    return { kind: 'malformed' }
  }
}

function decodeByPort(data: Data, now: number): Payload {
  const read = <Desc extends DescMessage>(schema: Desc): MessageShape<Desc> => fromBinary(schema, data.payload)
  switch (data.portnum) {
    case PortNum.TEXT_MESSAGE_APP:
      return decodeText(data, 'message')
    case PortNum.DETECTION_SENSOR_APP:
      return decodeText(data, 'detection')
    case PortNum.ALERT_APP:
      return decodeText(data, 'alert')
    case PortNum.RANGE_TEST_APP:
      return { kind: 'rangetest', text: new TextDecoder().decode(data.payload) }
    case PortNum.POSITION_APP: {
      const position = read(PositionSchema)
      const fix = decodePosition(position, now)
      return { kind: 'position', fix, ...(isOffGlobe(position) ? { isOffGlobe: true } : {}) }
    }
    case PortNum.NODEINFO_APP:
      return { kind: 'nodeinfo', user: decodeUser(read(wire.UserSchema)) }
    case PortNum.TELEMETRY_APP: {
      const telemetry = read(TelemetrySchema)
      const time = parseDeviceTime(telemetry.time, now)
      return { kind: 'telemetry', variant: telemetry.variant.case ?? null, time, metrics: listMetrics(telemetry) }
    }
    case PortNum.ROUTING_APP:
      return decodeRouting(read(wire.RoutingSchema))
    case PortNum.TRACEROUTE_APP:
      return { kind: 'traceroute', isReply: data.requestId !== 0, route: decodeRoute(read(wire.RouteDiscoverySchema)) }
    case PortNum.NEIGHBORINFO_APP:
      return decodeNeighbors(read(wire.NeighborInfoSchema))
    case PortNum.WAYPOINT_APP:
      return { kind: 'waypoint', waypoint: decodeWaypoint(read(wire.WaypointSchema)) }
    case PortNum.STORE_FORWARD_APP:
      return { kind: 'storeforward', storeForward: decodeStoreForward(read(wire.StoreAndForwardSchema)) }
    case PortNum.PAXCOUNTER_APP: {
      const { wifi, ble, uptime } = read(wire.PaxcountSchema)
      return { kind: 'paxcounter', wifi, ble, uptimeSeconds: uptime }
    }
    case PortNum.NODE_STATUS_APP:
      return { kind: 'status', status: withoutCut(read(wire.StatusMessageSchema).status) }
    case PortNum.MAP_REPORT_APP:
      return { kind: 'mapreport', report: decodeMapReport(read(MapReportSchema)) }
    case PortNum.ADMIN_APP:
      return { kind: 'admin' }
    default:
      return { kind: 'unknown' }
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
    expiresAt: waypoint.expire === 0 ? null : waypoint.expire * 1000,
    lockedTo: waypoint.lockedTo || null,
    name: waypoint.name,
    description: waypoint.description,
    icon: isCharacter ? String.fromCodePoint(waypoint.icon) : null,
  }
}
