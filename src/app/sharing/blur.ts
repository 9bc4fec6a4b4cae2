/** Units of a coordinate in the protocol: 1e-7 degrees, 32 bits. */
const UNITS = 1e7
const BITS = 32

type Place = {
  readonly latitude: number
  readonly longitude: number
  readonly altitude: number | null
  readonly precisionBits: number | null
}

/**
 * The place to so many bits: the middle of the cell that it lies in, as firmware rounds it, without its height. Whatever
 * precision it claims, it is rounded. `bits` null or 32: the place itself.
 */
export function blur<P extends Place>(place: P, bits: number | null): P {
  if (bits === null || bits >= BITS) return place
  return {
    ...place,
    latitude: middleOf(place.latitude, bits, 90),
    longitude: middleOf(place.longitude, bits, 180),
    altitude: null,
    precisionBits: Math.min(place.precisionBits ?? BITS, bits),
  }
}

/** At the edge of the world the middle of a cell may lie beyond it. */
function middleOf(degrees: number, bits: number, most: number): number {
  const cell = 2 ** (BITS - bits)
  const middle = Math.floor(Math.round(degrees * UNITS) / cell) * cell + cell / 2
  return Math.max(-most, Math.min(most, middle / UNITS))
}
