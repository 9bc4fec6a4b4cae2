export const TILE_FORMATS = ['raster', 'vector'] as const

/** The header of a PMTiles file (github.com/protomaps/PMTiles, spec/v3/spec.md, "Header"). */
export type PmtilesHeader = {
  readonly format: (typeof TILE_FORMATS)[number]
  readonly minZoom: number
  readonly maxZoom: number
  /** West, south, east, north in degrees. */
  readonly bounds: readonly [number, number, number, number]
}

export const PMTILES_HEADER_BYTES = 127

const MAGIC = 'PMTiles'
const VERSION = 3
/** The compression of the file's own directories: browsers can decompress these two. */
const COMPRESSIONS: ReadonlySet<number> = new Set([1, 2])
const FORMATS: ReadonlyMap<number, PmtilesHeader['format']> = new Map([
  [1, 'vector'],
  [2, 'raster'],
  [3, 'raster'],
  [4, 'raster'],
  [5, 'raster'],
])

/** Null for a file of another kind or version, and for one that a browser can't read. */
export function readPmtilesHeader(bytes: Uint8Array): PmtilesHeader | null {
  if (bytes.length < PMTILES_HEADER_BYTES) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const format = FORMATS.get(view.getUint8(99))
  const isKnown = new TextDecoder().decode(bytes.subarray(0, 7)) === MAGIC && view.getUint8(7) === VERSION
  if (!isKnown || format === undefined || !COMPRESSIONS.has(view.getUint8(97))) return null
  const degrees = (at: number) => view.getInt32(at, true) / 1e7
  return {
    format,
    minZoom: view.getUint8(100),
    maxZoom: view.getUint8(101),
    bounds: [degrees(102), degrees(106), degrees(110), degrees(114)],
  }
}
