import { create, toBinary } from '@bufbuild/protobuf'
import { WaypointSchema } from '../gen/payloads_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { type Destination, encodeData } from './to-radio.ts'

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
}

/** An encoded ToRadio that shares, changes or deletes a waypoint. */
export function encodeWaypoint(destination: Destination, waypoint: WaypointToSend): Uint8Array {
  const { id, name, description, icon, latitude, longitude, expiresAt, lockedTo } = waypoint
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
  return encodeData({ ...destination, port: PortNum.WAYPOINT_APP, payload: toBinary(WaypointSchema, message) })
}

function secondsOf(expiresAt: WaypointToSend['expiresAt']): number {
  if (expiresAt === null) return NO_END
  return expiresAt === 'deleted' ? DELETED : Math.min(NO_END, Math.floor(expiresAt / 1000))
}
