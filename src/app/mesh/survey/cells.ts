import { COVERAGE_BITS } from '../../../shared/mesh/coverage.ts'

// The cells are those in which the firmware rounds positions, so that a cell says no more than a rounded position does. A
// geohash would cut them elsewhere, and both together would tell where in a cell a node is.
// Decision: docs/decisions/cells-of-coverage.md

/** Units of a coordinate in the protocol: 1e-7 degrees, 32 bits. */
const UNITS = 1e7
const BITS = 32
const SPAN = 2 ** COVERAGE_BITS.max

/** `bits` of longitude and latitude, signed. */
export type Cell = { readonly bits: number; readonly x: number; readonly y: number }

type Place = { readonly latitude: number; readonly longitude: number; readonly precisionBits: number | null }

/** The smallest cell of a position; null: the position is too rough. */
export function cellOf({ latitude, longitude, precisionBits }: Place): Cell | null {
  const bits = Math.min(COVERAGE_BITS.max, precisionBits ?? BITS)
  return bits < COVERAGE_BITS.min ? null : { bits, x: part(longitude, bits), y: part(latitude, bits) }
}

function part(degrees: number, bits: number): number {
  return Math.floor(Math.round(degrees * UNITS) / 2 ** (BITS - bits))
}

/** The cell of at most this many bits around a cell. */
export function around({ bits, x, y }: Cell, most: number): Cell {
  const less = Math.max(0, bits - most)
  return { bits: bits - less, x: x >> less, y: y >> less }
}

/** A cell as one number. */
export function packed({ bits, x, y }: Cell): number {
  return (bits * SPAN + x + SPAN / 2) * SPAN + y + SPAN / 2
}

export function unpacked(cell: number): Cell {
  const rest = Math.floor(cell / SPAN)
  return { bits: Math.floor(rest / SPAN), x: (rest % SPAN) - SPAN / 2, y: (cell % SPAN) - SPAN / 2 }
}

/** Degrees: west, south, east, north. */
export type Bounds = readonly [number, number, number, number]

export function boundsOf({ bits, x, y }: Cell): Bounds {
  const size = 2 ** (BITS - bits)
  const edge = (at: number, most: number) => Math.max(-most, Math.min(most, (at * size) / UNITS))
  return [edge(x, 180), edge(y, 90), edge(x + 1, 180), edge(y + 1, 90)]
}

/** Whether they overlap; `bounds` may cross the date line: then its west lies east of its east. */
export function isWithin([west, south, east, north]: Bounds, bounds: Bounds): boolean {
  const [w, s, e, n] = bounds
  if (north < s || south > n) return false
  return w <= e ? east >= w && west <= e : east >= w || west <= e
}
