import { BASE } from '../../../api.ts'
import { type Piece, readPiece } from './piece.ts'

/** More than any view needs; the least recently used are dropped. */
const MAX_KEPT = 160

export type Pieces = {
  /** What there is of this piece, or of a larger one around it; null: open sea, or nothing yet. What is missing is loaded. */
  find(z: number, column: number, row: number): Piece | null
}

/** The zoom levels of the pieces with shapes, and from which one of the map each is drawn. */
const LEVELS = [
  { z: 5, from: 6.5 },
  { z: 3, from: 5 },
  { z: 2, from: 3 },
  { z: 0, from: 0 },
] as const
/** Small towns have pieces of their own. */
const SMALL_TOWNS = { z: 6, from: 10 } as const

/** The levels of which pieces are drawn at a zoom level: the first has shapes. */
export function levelsAt(zoom: number): readonly number[] {
  const shapes = LEVELS.find(({ from }) => zoom >= from)?.z ?? 0
  return zoom >= SMALL_TOWNS.from ? [shapes, SMALL_TOWNS.z] : [shapes]
}

/** Loads pieces when they are first needed, and calls `onLoad` after each. */
export function createPieces(onLoad: () => void): Pieces {
  const kept = new Map<string, Piece | null>()
  const load = async (z: number, column: number, row: number) => {
    const name = nameOf(z, column, row)
    try {
      kept.set(name, readPiece(await fetchPiece(name), { z, column, row }))
    } catch (cause) {
      // The map stays without it until it is needed again: these are not what anybody looks for.
      console.warn(cause)
      kept.delete(name)
      return
    }
    onLoad()
  }
  return {
    find(z, column, row) {
      if (!exists(z, column, row)) return null
      const name = nameOf(z, column, row)
      const known = kept.get(name)
      kept.delete(name)
      kept.set(name, known ?? null)
      if (known === undefined) {
        for (const old of kept.keys()) if (kept.size > MAX_KEPT) kept.delete(old)
        void load(z, column, row)
      }
      return known ?? around(kept, z, column, row)
    },
  }
}

/** A loaded piece that contains this one. */
function around(kept: ReadonlyMap<string, Piece | null>, z: number, column: number, row: number): Piece | null {
  for (const larger of LEVELS) {
    const times = 2 ** (z - larger.z)
    if (times <= 1) continue
    const found = kept.get(nameOf(larger.z, Math.floor(column / times), Math.floor(row / times)))
    if (found !== undefined && found !== null) return found
  }
  return null
}

const nameOf = (z: number, column: number, row: number) => `${z}-${column}-${row}.bin`

const { folder, pieces } = import.meta.env.WORLD
const bits = new Map<number, string>()

function exists(z: number, column: number, row: number): boolean {
  const known = bits.get(z) ?? atob(pieces[z] ?? '')
  bits.set(z, known)
  const at = row * 2 ** z + column
  return ((known.charCodeAt(at >> 3) >> (at & 7)) & 1) === 1
}

async function fetchPiece(name: string): Promise<Uint8Array> {
  const { ok, status, body } = await fetch(`${BASE}${folder}/${name}`)
  if (!ok || body === null) throw new Error(`${name}: ${status}`)
  const plain = body.pipeThrough(new DecompressionStream('deflate-raw'))
  return new Uint8Array(await new Response(plain).arrayBuffer())
}
