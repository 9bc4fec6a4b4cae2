type Place = { readonly latitude: number; readonly longitude: number }

/** The mean radius of the earth. */
const EARTH_METRES = 6_371_008.8
const radians = (degrees: number) => (degrees * Math.PI) / 180

/** Along a great circle, in metres. */
export function distanceMetres(a: Place, b: Place): number {
  const half = (x: number) => Math.sin(x / 2) ** 2
  const h =
    half(radians(b.latitude - a.latitude)) +
    Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * half(radians(b.longitude - a.longitude))
  return 2 * EARTH_METRES * Math.asin(Math.min(1, Math.sqrt(h)))
}

/** How far a node with a rounded position may be from it, in metres. */
export function roughness(precisionBits: number | null): number {
  if (precisionBits === null || precisionBits >= 32) return 0
  return radians(2 ** (32 - precisionBits) * 1e-7) * EARTH_METRES
}
