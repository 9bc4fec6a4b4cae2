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
