import { gzipSync } from 'node:zlib'

type Tile = { readonly z: number; readonly x: number; readonly y: number; readonly bytes: Uint8Array }

const TYPES = { mvt: 1, png: 2 } as const

/**
 * A PMTiles 3 file (github.com/protomaps/PMTiles, spec/v3/spec.md) with one directory, written without the library that
 * reads it in the browser. West, south, east, north of the whole world.
 */
export function writePmtiles(
  tiles: readonly Tile[],
  type: keyof typeof TYPES,
  attribution: string,
): Buffer<ArrayBuffer> {
  const zooms = tiles.map(({ z }) => z)
  const sorted = tiles
    .map((tile) => ({ id: tileId(tile), bytes: type === 'mvt' ? gzipSync(tile.bytes) : Buffer.from(tile.bytes) }))
    .toSorted((a, b) => a.id - b.id)
  const directory = gzipSync(writeDirectory(sorted))
  const metadata = gzipSync(JSON.stringify({ name: 'test', attribution }))
  const data = Buffer.concat(sorted.map(({ bytes }) => bytes))
  const header = Buffer.alloc(127)
  header.write('PMTiles\x03', 'latin1')
  const sections = [
    [header.length, directory.length],
    [header.length + directory.length, metadata.length],
    [0, 0],
    [header.length + directory.length + metadata.length, data.length],
  ]
  for (const [index, [offset = 0, length = 0]] of sections.entries()) {
    header.writeBigUInt64LE(BigInt(offset), 8 + index * 16)
    header.writeBigUInt64LE(BigInt(length), 16 + index * 16)
  }
  for (const at of [72, 80, 88]) header.writeBigUInt64LE(BigInt(tiles.length), at)
  // Clustered; directories packed by gzip; tiles packed by gzip, or not; their type; zooms.
  header.set([1, 2, type === 'mvt' ? 2 : 1, TYPES[type], Math.min(...zooms), Math.max(...zooms)], 96)
  for (const [index, degrees] of [-180, -85, 180, 85].entries()) header.writeInt32LE(degrees * 1e7, 102 + index * 4)
  return Buffer.concat([header, directory, metadata, data])
}

function writeDirectory(entries: readonly { id: number; bytes: Uint8Array }[]): Buffer {
  const ids = entries.map(({ id }, index) => id - (entries[index - 1]?.id ?? 0))
  const offsets = entries.map((_, index) => (index === 0 ? 1 : 0))
  const columns = [ids, entries.map(() => 1), entries.map(({ bytes }) => bytes.length), offsets]
  return Buffer.from([entries.length, ...columns.flat()].flatMap(varint))
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}

/** The position of a tile on the Hilbert curve of its zoom, after all tiles of lower zooms. */
function tileId({ z, x, y }: Tile): number {
  let id = (4 ** z - 1) / 3
  let [left, top] = [x, y]
  for (let side = 2 ** z / 2; side >= 1; side /= 2) {
    const right = (left & side) > 0 ? 1 : 0
    const below = (top & side) > 0 ? 1 : 0
    id += side * side * ((3 * right) ^ below)
    if (below === 0) {
      if (right === 1) [left, top] = [side - 1 - (left & (side - 1)), side - 1 - (top & (side - 1))]
      ;[left, top] = [top, left]
    }
  }
  return id
}
