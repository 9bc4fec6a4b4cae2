import { distanceMetres } from '../../../../shared/mesh/distance.ts'

/** From one place to the next: its length, and its direction at the start in degrees from north, clockwise. */
export type Leg = { readonly meters: number; readonly degrees: number }

export function legsOf(places: readonly { readonly lat: number; readonly lng: number }[]): Leg[] {
  return places.slice(1).flatMap((to, index) => {
    const from = places[index]
    if (from === undefined) return []
    const a = { latitude: from.lat, longitude: from.lng }
    const b = { latitude: to.lat, longitude: to.lng }
    return { meters: distanceMetres(a, b), degrees: bearing(a, b) }
  })
}

type Place = Parameters<typeof distanceMetres>[0]

/** Along a great circle. */
function bearing(from: Place, to: Place): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180
  const [a, b] = [radians(from.latitude), radians(to.latitude)]
  const turn = radians(to.longitude - from.longitude)
  const y = Math.sin(turn) * Math.cos(b)
  const x = Math.cos(a) * Math.sin(b) - Math.sin(a) * Math.cos(b) * Math.cos(turn)
  return ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360
}

type At = { readonly lat: number; readonly lng: number }

/** Up to this length a straight line on the map is close to the shortest way. */
const STRAIGHT_METRES = 100_000
const MAX_STEPS = 100

/**
 * The shortest ways between places, as a line on the map. Longitudes go on beyond ±180°, so that no line runs around the
 * world; the last place is near the longitude `near`, where the user looks. `stops`: the places on it.
 */
export function wayOf(
  places: readonly At[],
  near: number,
): { readonly line: readonly At[]; readonly stops: readonly At[] } {
  const line: At[] = []
  const stops: At[] = []
  for (const [index, to] of places.entries()) {
    const from = places[index - 1]
    if (from === undefined) line.push(to)
    else for (const at of between(from, to)) line.push({ lat: at.lat, lng: beside(at.lng, line.at(-1)?.lng ?? 0) })
    stops.push(line.at(-1) ?? to)
  }
  const last = line.at(-1)?.lng ?? 0
  const shift = beside(last, near) - last
  const shifted = ({ lat, lng }: At) => ({ lat, lng: lng + shift })
  return { line: line.map(shifted), stops: stops.map(shifted) }
}

/** The copy of a longitude that is nearest to another one. */
function beside(lng: number, near: number): number {
  return lng + 360 * Math.round((near - lng) / 360)
}

/** The places after `from` along a great circle, up to `to`. */
function between(from: At, to: At): At[] {
  const a = { latitude: from.lat, longitude: from.lng }
  const meters = distanceMetres(a, { latitude: to.lat, longitude: to.lng })
  const steps = Math.min(MAX_STEPS, Math.ceil(meters / STRAIGHT_METRES))
  if (steps <= 1) return [to]
  const [p, q] = [vector(from), vector(to)]
  const angle = meters / EARTH_METRES
  const found: At[] = []
  for (let step = 1; step < steps; step += 1) {
    const part = step / steps
    const [m, n] = [Math.sin((1 - part) * angle) / Math.sin(angle), Math.sin(part * angle) / Math.sin(angle)]
    const [x, y, z] = [m * p.x + n * q.x, m * p.y + n * q.y, m * p.z + n * q.z]
    found.push({ lat: (Math.atan2(z, Math.hypot(x, y)) * 180) / Math.PI, lng: (Math.atan2(y, x) * 180) / Math.PI })
  }
  return [...found, to]
}

function vector({ lat, lng }: At) {
  const [up, turn] = [(lat * Math.PI) / 180, (lng * Math.PI) / 180]
  return { x: Math.cos(up) * Math.cos(turn), y: Math.cos(up) * Math.sin(turn), z: Math.sin(up) }
}

/** The mean radius of the earth. */
const EARTH_METRES = 6_371_008.8
const EDGES = 120

/** The edge of a circle around a place, in places that lie apart evenly; longitudes go on beyond ±180°. */
export function circleAround({ lat, lng }: At, meters: number): At[] {
  const [up, far] = [(lat * Math.PI) / 180, meters / EARTH_METRES]
  return Array.from({ length: EDGES }, (_, index) => {
    const turn = (index / EDGES) * 2 * Math.PI
    const other = Math.asin(Math.sin(up) * Math.cos(far) + Math.cos(up) * Math.sin(far) * Math.cos(turn))
    const across = Math.atan2(
      Math.sin(turn) * Math.sin(far) * Math.cos(up),
      Math.cos(far) - Math.sin(up) * Math.sin(other),
    )
    return { lat: (other * 180) / Math.PI, lng: lng + (across * 180) / Math.PI }
  })
}
