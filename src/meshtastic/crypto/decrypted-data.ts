import type { DescMessage } from '@bufbuild/protobuf'
import { MapReportSchema } from '../gen/mqtt_pb.ts'
import { type Data, DataSchema } from '../gen/packet_pb.ts'
import * as payloads from '../gen/payloads_pb.ts'
import { PortNum, PortNumSchema } from '../gen/ports_pb.ts'
import { PositionSchema } from '../gen/position_pb.ts'
import { TelemetrySchema } from '../gen/telemetry_pb.ts'
import { decodeStrictly } from '../wire-shape.ts'

const SCHEMAS: ReadonlyMap<PortNum, DescMessage> = new Map<PortNum, DescMessage>([
  [PortNum.POSITION_APP, PositionSchema],
  [PortNum.NODEINFO_APP, payloads.UserSchema],
  [PortNum.ROUTING_APP, payloads.RoutingSchema],
  [PortNum.WAYPOINT_APP, payloads.WaypointSchema],
  [PortNum.PAXCOUNTER_APP, payloads.PaxcountSchema],
  [PortNum.NODE_STATUS_APP, payloads.StatusMessageSchema],
  [PortNum.STORE_FORWARD_APP, payloads.StoreAndForwardSchema],
  [PortNum.TELEMETRY_APP, TelemetrySchema],
  [PortNum.TRACEROUTE_APP, payloads.RouteDiscoverySchema],
  [PortNum.NEIGHBORINFO_APP, payloads.NeighborInfoSchema],
  [PortNum.MAP_REPORT_APP, MapReportSchema],
])

const TEXT_PORTS: ReadonlySet<PortNum> = new Set([
  PortNum.TEXT_MESSAGE_APP,
  PortNum.DETECTION_SENSOR_APP,
  PortNum.ALERT_APP,
  PortNum.RANGE_TEST_APP,
])

/**
 * The content of decrypted bytes, or null if the key was wrong. The cipher does not detect a wrong key, so only a known
 * port with a valid payload is accepted.
 */
export function decodeDecrypted(bytes: Uint8Array): Data | null {
  const data = decodeStrictly(DataSchema, bytes)
  return data !== null && PortNumSchema.value[data.portnum] !== undefined && hasValidPayload(data) ? data : null
}

function hasValidPayload({ portnum, payload }: Data): boolean {
  if (portnum === PortNum.UNKNOWN_APP) return false
  if (TEXT_PORTS.has(portnum)) return isText(payload)
  const schema = SCHEMAS.get(portnum)
  return schema === undefined || decodeStrictly(schema, payload) !== null
}

function isText(bytes: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes) !== ''
  } catch {
    return false
  }
}
