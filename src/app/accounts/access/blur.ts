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
 * A position rounded to this many bits: the middle of its cell, as the firmware rounds it, without its altitude. It is
 * always rounded, whatever precision it claims. `bits` null or 32: the position itself.
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

/** The middle of a cell at the limits of latitude and longitude may lie beyond them. */
function middleOf(degrees: number, bits: number, most: number): number {
  const cell = 2 ** (BITS - bits)
  const middle = Math.floor(Math.round(degrees * UNITS) / cell) * cell + cell / 2
  return Math.max(-most, Math.min(most, middle / UNITS))
}
