import { parseDeviceTime } from '../device-time.ts'
import type { Position } from '../gen/position_pb.ts'

/** A place on Earth. Degrees are WGS 84; absent values are null, never 0. */
export type PositionFix = {
  readonly latitude: number
  readonly longitude: number
  /** Metres above mean sea level. */
  readonly altitude: number | null
  /** 10 to 31: the sender reduced the position to a cell of this many bits; 32: exact; null: unknown. */
  readonly precisionBits: number | null
  /** When the device measured it, in milliseconds; null if its clock is wrong. */
  readonly time: number | null
  readonly satsInView: number | null
}

/** Null for a message without coordinates, for 0,0 ("Null Island", a receiver without a fix) and outside the globe. */
export function decodePosition(position: Position, now: number): PositionFix | null {
  const place = decodeCoordinates(position.latitudeI, position.longitudeI)
  if (place === null) return null
  return {
    ...place,
    altitude: position.altitude ?? null,
    precisionBits: position.precisionBits || null,
    time: parseDeviceTime(position.timestamp, now) ?? parseDeviceTime(position.time, now),
    satsInView: position.satsInView || null,
  }
}

/** When the device sent it, unless that is the time of the fix or its clock is wrong. A fix may be sent many times. */
export function sentTimeOf({ time, timestamp }: Position, now: number): { readonly sentTime?: number } {
  const sentTime = parseDeviceTime(time, now)
  return sentTime === null || sentTime === (parseDeviceTime(timestamp, now) ?? sentTime) ? {} : { sentTime }
}

/** Whether it has coordinates outside the globe. */
export function isOffGlobe({ latitudeI, longitudeI }: Position): boolean {
  if (latitudeI === undefined || longitudeI === undefined) return false
  return Math.abs(latitudeI) > 90e7 || Math.abs(longitudeI) > 180e7
}

/** Degrees from the message's degrees × 10⁷; null under the same rules as `decodePosition`. */
export function decodeCoordinates(
  latitudeI: number | undefined,
  longitudeI: number | undefined,
): { readonly latitude: number; readonly longitude: number } | null {
  if (latitudeI === undefined || longitudeI === undefined) return null
  if (latitudeI === 0 && longitudeI === 0) return null
  const latitude = latitudeI / 1e7
  const longitude = longitudeI / 1e7
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : null
}
