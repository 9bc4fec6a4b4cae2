import { create, toBinary } from '@bufbuild/protobuf'
import { base64Decode, base64Encode, BinaryReader } from '@bufbuild/protobuf/wire'
import { WaypointSchema } from '../gen/payloads_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { type Destination, encodeData, MAX_PAYLOAD_BYTES } from './to-radio.ts'

/** The latest end that apps can show. They take 0 for a waypoint that has ended. */
export const NO_END = 0x7fffffff

/** The end of a waypoint that is deleted: long ago, as apps set it. */
const DELETED = 1

export type WaypointToSend = {
  /** u32, not 0. */
  readonly id: number
  readonly name: string
  readonly description: string
  /** One character. */
  readonly icon: string | null
  readonly latitude: number
  readonly longitude: number
  /** Milliseconds; null: it has no end. `deleted`: everybody deletes it. */
  readonly expiresAt: number | 'deleted' | null
  readonly lockedTo: number | null
  /** Its other fields, as `restOfWaypoint` returned them. */
  readonly rest: string
}

/** The newest field that is read here, and written. */
const LAST_FIELD = WaypointSchema.field.icon.number

/** The fields of an encoded waypoint that nothing here reads, such as a geofence, in base64. Throws for malformed bytes. */
export function restOfWaypoint(bytes: Uint8Array): string {
  const reader = new BinaryReader(bytes)
  const rest: number[] = []
  while (reader.pos < reader.len) {
    const start = reader.pos
    const [number, wireType] = reader.tag()
    reader.skip(wireType, number)
    if (number > LAST_FIELD) rest.push(...bytes.subarray(start, reader.pos))
  }
  return base64Encode(Uint8Array.from(rest))
}

/** An encoded ToRadio that shares, changes or deletes a waypoint; null: it is too long for a packet. */
export function encodeWaypoint(destination: Destination, waypoint: WaypointToSend): Uint8Array | null {
  const { id, name, description, icon, latitude, longitude, expiresAt, lockedTo, rest } = waypoint
  const message = create(WaypointSchema, {
    id,
    name,
    description,
    icon: icon?.codePointAt(0) ?? 0,
    latitudeI: Math.round(latitude * 1e7),
    longitudeI: Math.round(longitude * 1e7),
    expire: secondsOf(expiresAt),
    lockedTo: lockedTo ?? 0,
  })
  const payload = Uint8Array.from([...toBinary(WaypointSchema, message), ...base64Decode(rest)])
  if (payload.length > MAX_PAYLOAD_BYTES) return null
  return encodeData({ ...destination, port: PortNum.WAYPOINT_APP, payload })
}

function secondsOf(expiresAt: WaypointToSend['expiresAt']): number {
  if (expiresAt === null) return NO_END
  return expiresAt === 'deleted' ? DELETED : Math.min(NO_END, Math.floor(expiresAt / 1000))
}
