import { gzipSync } from 'node:zlib'
import { zxyToTileId } from 'pmtiles'

/** Tiles that have their own content; all others are sea. */
export type Land = (z: number, x: number, y: number) => boolean

export type Planet = {
  readonly bytes: Buffer<ArrayBuffer>
  /** The tile as it is in the file. */
  tile(z: number, x: number, y: number): Buffer
  /** Where the tiles begin. */
  readonly tilesAt: number
}

type Entry = { id: number; offset: number; length: number; run: number }

/** What a test does to the planet before it is written. */
export type Damage = {
  readonly directory?: (entries: Entry[], index: number) => void
  readonly header?: (header: Buffer) => void
  readonly leaf?: (packed: Buffer, index: number) => Buffer
  readonly tile?: (packed: Buffer, z: number, x: number, y: number) => Buffer
}

const SEA = gzipSync('sea')
const LEAF_ENTRIES = 200

/**
 * A planet of all zoom levels up to `maxZoom`, with leaf directories, runs and repeated contents, written by the
 * specification (github.com/protomaps/PMTiles, spec/v3/spec.md). `edition` is in each tile of the land.
 */
export function writePlanet(maxZoom: number, edition: string, land: Land, damage: Damage = {}): Planet {
  const ids = new Map<number, readonly [number, number, number]>()
  for (let z = 0; z <= maxZoom; z++)
    for (let x = 0; x < 2 ** z; x++) for (let y = 0; y < 2 ** z; y++) ids.set(zxyToTileId(z, x, y), [z, x, y])
  const contents = new Map<string, { offset: number; length: number }>()
  const data: Buffer[] = []
  const entries: Entry[] = []
  const tiles = new Map<string, Buffer>()
  let length = 0
  for (const id of [...ids.keys()].toSorted((a, b) => a - b)) {
    const [z, x, y] = ids.get(id) ?? [0, 0, 0]
    const isLand = land(z, x, y)
    const name = isLand ? `${z}/${x}/${y}` : 'sea'
    const packed = isLand ? landTile(name, edition) : SEA
    const written = damage.tile?.(packed, z, x, y) ?? packed
    tiles.set(`${z}/${x}/${y}`, written)
    const known = contents.get(name)
    const place = known ?? { offset: length, length: written.length }
    if (known === undefined) {
      contents.set(name, place)
      data.push(written)
      length += written.length
    }
    const last = entries.at(-1)
    if (last?.offset === place.offset && last.id + last.run === id) last.run += 1
    else entries.push({ id, ...place, run: 1 })
  }
  return {
    ...assemble(maxZoom, entries, Buffer.concat(data), damage),
    tile: (z, x, y) => tiles.get(`${z}/${x}/${y}`) ?? SEA,
  }
}

/** About two thousand bytes that gzip cannot shorten, the same for the same name. */
function landTile(name: string, edition: string): Buffer {
  let state = [...`${name} ${edition}`].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7)
  const noise = Buffer.alloc(1000 + (state % 2000))
  for (let i = 0; i < noise.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    noise[i] = state >>> 24
  }
  return gzipSync(Buffer.concat([Buffer.from(`${name} ${edition} `), noise]), { level: 1 })
}

function assemble(maxZoom: number, entries: Entry[], data: Buffer, damage: Damage) {
  const leaves: Buffer[] = []
  const index: Entry[] = []
  let offset = 0
  for (let from = 0; from < entries.length; from += LEAF_ENTRIES) {
    const some = entries.slice(from, from + LEAF_ENTRIES)
    const { id } = some[0] ?? { id: 0 }
    damage.directory?.(some, index.length + 1)
    const plain = gzipSync(directory(some))
    const leaf = damage.leaf?.(plain, index.length) ?? plain
    index.push({ id, offset, length: leaf.length, run: 0 })
    leaves.push(leaf)
    offset += leaf.length
  }
  damage.directory?.(index, 0)
  const root = gzipSync(directory(index))
  const metadata = gzipSync(
    JSON.stringify({ name: 'planet', attribution: '<a href="https://example.org">Somebody</a> &copy; Everybody' }),
  )
  const header = Buffer.alloc(127)
  header.write('PMTiles\x03', 'latin1')
  const leafBytes = Buffer.concat(leaves)
  let at = header.length
  for (const [i, part] of [root, metadata, leafBytes, data].entries()) {
    header.writeBigUInt64LE(BigInt(at), 8 + i * 16)
    header.writeBigUInt64LE(BigInt(part.length), 16 + i * 16)
    at += part.length
  }
  header.set([1, 2, 2, 1, 0, maxZoom], 96)
  for (const [i, degrees] of [-180, -85, 180, 85].entries()) header.writeInt32LE(degrees * 1e7, 102 + i * 4)
  damage.header?.(header)
  return { bytes: Buffer.concat([header, root, metadata, leafBytes, data]), tilesAt: at - data.length }
}

function directory(entries: readonly Entry[]): Buffer {
  const ids = entries.map(({ id }, i) => id - (entries[i - 1]?.id ?? 0))
  const offsets = entries.map(({ offset }, i) => {
    const before = entries[i - 1]
    return before !== undefined && before.offset + before.length === offset ? 0 : offset + 1
  })
  const columns = [ids, entries.map(({ run }) => run), entries.map(({ length }) => length), offsets]
  return Buffer.from([entries.length, ...columns.flat()].flatMap(varint))
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}
