import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { PMTILES_HEADER_BYTES } from '../../../app/mesh/map/pmtiles-header.ts'
import type { Area } from '../../../app/mesh/map/region/area.ts'
import { type Cover, coverOf, spanAfter } from '../pmtiles/cover.ts'
import { DamagedArchive, type Entry, readDirectory, type Within, writeDirectory } from '../pmtiles/directory.ts'
import { GZIP, type Header, readHeader, START_BYTES, writeHeader } from '../pmtiles/header.ts'
import { createContents, type Contents } from './contents.ts'
import { createNumbers } from './numbers.ts'
import type { Planet } from './planet.ts'
import { RegionFailed } from './problems.ts'
import { MAX_GAP, MAX_REQUEST_BYTES } from './requests.ts'

/** A region as it will be written: everything but the tiles themselves. */
export type Plan = {
  /** `maxZoom` is that of the planet if it has no more. */
  readonly area: Area
  /** The file up to the first tile: header, root directory, metadata, leaf directories. */
  readonly head: Buffer
  /** Of the finished file. */
  readonly bytes: number
  readonly tiles: number
  readonly contents: Contents
  /** Where tiles begin in the planet. */
  readonly tilesAt: number
  readonly isTilePacked: boolean
  /** Differs between plans, and between those whose requests would be others. */
  readonly fingerprint: string
}

const MAX_ENTRIES = 1_000_000
const MAX_LEAF_BYTES = 1024 * 1024
const MAX_PLAIN_LEAF_BYTES = 2 * 1024 * 1024
const MAX_METADATA_BYTES = 1024 * 1024
const MAX_PLAIN_METADATA_BYTES = 8 * 1024 * 1024
/** Of all directories of one region, compressed. */
const MAX_DIRECTORY_BYTES = 256 * 1024 * 1024
/** Directories in directories. Writers make one level. */
const MAX_DEPTH = 3
/** With MAX_ENTRIES, all leaves fit into a root directory. */
const LEAF_ENTRIES = 4096
const NO_COMPRESSION = 1
const VECTOR = 1

const unpackBytes = promisify(gunzip)
const packBytes = promisify(gzip)

/**
 * Reads the directories of a planet, as far as an area needs them. Throws RegionFailed, and what reading the planet
 * throws.
 */
export async function planRegion(planet: Planet, asked: Area): Promise<Plan> {
  try {
    return await plan(planet, asked)
  } catch (error) {
    if (error instanceof DamagedArchive) throw new RegionFailed('damaged', error)
    throw error
  }
}

async function plan(planet: Planet, asked: Area): Promise<Plan> {
  const header = readHeader(planet.start, planet.identity.size)
  const { tileType, tileCompression } = header
  if (tileCompression !== GZIP && tileCompression !== NO_COMPRESSION) throw new DamagedArchive('compression of tiles')
  if (tileType !== VECTOR && tileCompression === GZIP) throw new DamagedArchive('compression of images')
  const area = { bounds: asked.bounds, maxZoom: Math.min(asked.maxZoom, header.maxZoom) }
  const selection = createSelection(await coverOf(area))
  await readDirectories(planet, header, selection)
  const { contents, count, entryAt, tiles } = selection
  if (count() === 0) throw new RegionFailed('empty')
  const metadata = await packBytes(JSON.stringify(await readMetadata(planet, header)))
  const { root, leaves } = await writeDirectories(entryAt, count())
  const sections = { rootBytes: root.length, metadataBytes: metadata.length, leafBytes: leaves.length }
  const counts = { addressed: tiles(), entries: count(), contents: contents.count() }
  const written = writeHeader({ area, of: header, ...sections, tileBytes: contents.bytes(), ...counts })
  const head = Buffer.concat([written, root, metadata, leaves])
  return {
    area,
    head,
    bytes: head.length + contents.bytes(),
    tiles: tiles(),
    contents,
    tilesAt: header.tiles.offset,
    isTilePacked: tileCompression === GZIP,
    fingerprint: createHash('sha256')
      .update(JSON.stringify([planet.identity, MAX_GAP, MAX_REQUEST_BYTES]))
      .update(head)
      .digest('hex'),
  }
}

/** The entries of the region, in the order of their ids. */
function createSelection(cover: Cover) {
  const ids = createNumbers()
  const runs = createNumbers()
  const indexes = createNumbers()
  const contents = createContents()
  let tiles = 0
  return {
    contents,
    tiles: () => tiles,
    count: ids.count,
    entryAt: (index: number): Entry => {
      const content = indexes.at(index)
      return {
        id: ids.at(index),
        run: runs.at(index),
        offset: contents.targetOf(content),
        length: contents.lengthOf(content),
      }
    },
    /** Whether any id from `from` to before `to` is in the region. */
    wants(from: number, to: number): boolean {
      const span = cover[spanAfter(cover, from)]
      return span !== undefined && span.from < to
    },
    add({ id, run, offset, length }: Entry): void {
      for (let at = spanAfter(cover, id); at < cover.length; at++) {
        const span = cover[at]
        if (span === undefined || span.from >= id + run) return
        const from = Math.max(id, span.from)
        const to = Math.min(id + run, span.to)
        if (ids.count() >= MAX_ENTRIES) throw new RegionFailed('tooManyTiles')
        ids.push(from)
        runs.push(to - from)
        indexes.push(contents.add(offset, length))
        tiles += to - from
      }
    },
  }
}

type Selection = ReturnType<typeof createSelection>

async function readDirectories(planet: Planet, header: Header, selection: Selection): Promise<void> {
  let read = 0
  const unpack = async (bytes: Uint8Array) => {
    if (!header.isPacked) return bytes
    return unpackBytes(bytes, { maxOutputLength: MAX_PLAIN_LEAF_BYTES }).catch((error: unknown) => {
      throw new DamagedArchive('compression of a directory', { cause: error })
    })
  }
  const walk = async (bytes: Uint8Array, within: Within, depth: number): Promise<void> => {
    const entries = readDirectory(await unpack(bytes), within)
    const endOf = (index: number) => entries[index + 1]?.id ?? within.to
    const wanted = entries.filter(({ id, run }, index) => run === 0 && selection.wants(id, endOf(index)))
    if (wanted.length > 0 && depth === MAX_DEPTH) throw new DamagedArchive('depth of directories')
    if (wanted.some(({ length }) => length > MAX_LEAF_BYTES)) throw new DamagedArchive('size of a directory')
    const fetchLeaf = fetchLeaves(planet, header, wanted, (length) => {
      read += length
      if (read > MAX_DIRECTORY_BYTES) throw new RegionFailed('tooManyTiles')
    })
    for (const [index, entry] of entries.entries()) {
      if (entry.run > 0) selection.add(entry)
      else if (selection.wants(entry.id, endOf(index))) {
        await walk(await fetchLeaf(entry), { ...within, from: entry.id, to: endOf(index) }, depth + 1)
      }
    }
  }
  const { offset, length } = header.root
  const root = planet.start.subarray(offset, offset + length)
  if (root.length < length) throw new DamagedArchive('the file ends early')
  const sizes = { tileBytes: header.tiles.length, leafBytes: header.leaves.length }
  await walk(root, { from: 0, to: Number.MAX_SAFE_INTEGER, ...sizes }, 0)
}

/** Reads directories in their order, several that lie beside each other at once. */
function fetchLeaves(planet: Planet, header: Header, wanted: readonly Entry[], note: (length: number) => void) {
  let next = 0
  let held: { from: number; to: number; bytes: Buffer } = { from: 0, to: 0, bytes: Buffer.alloc(0) }
  return async (entry: Entry): Promise<Uint8Array> => {
    if (entry.offset < held.from || entry.offset + entry.length > held.to) {
      while (wanted[next] !== entry) next++
      let to = entry.offset + entry.length
      for (let i = next + 1; i < wanted.length; i++) {
        const { offset, length } = wanted[i] ?? entry
        const isBeside = offset >= to && offset - to <= MAX_GAP && offset + length - entry.offset <= MAX_REQUEST_BYTES
        if (!isBeside) break
        to = offset + length
      }
      note(to - entry.offset)
      const bytes = await planet.read(header.leaves.offset + entry.offset, to - entry.offset)
      held = { from: entry.offset, to, bytes }
    }
    return held.bytes.subarray(entry.offset - held.from, entry.offset - held.from + entry.length)
  }
}

async function readMetadata(planet: Planet, { metadata, isPacked }: Header): Promise<object> {
  if (metadata.length === 0) return {}
  if (metadata.length > MAX_METADATA_BYTES) throw new DamagedArchive('size of the metadata')
  const bytes = await planet.read(metadata.offset, metadata.length)
  try {
    const plain = isPacked ? await unpackBytes(bytes, { maxOutputLength: MAX_PLAIN_METADATA_BYTES }) : bytes
    const value: unknown = JSON.parse(plain.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    throw new DamagedArchive('metadata', { cause: error })
  }
  throw new DamagedArchive('metadata')
}

async function writeDirectories(entryAt: (index: number) => Entry, count: number) {
  const alone = count <= LEAF_ENTRIES ? await packBytes(writeDirectory(entryAt, 0, count)) : null
  if (alone !== null && alone.length <= START_BYTES - PMTILES_HEADER_BYTES) {
    return { root: alone, leaves: Buffer.alloc(0) }
  }
  const leaves: Buffer[] = []
  const index: Entry[] = []
  let offset = 0
  for (let from = 0; from < count; from += LEAF_ENTRIES) {
    const leaf = await packBytes(writeDirectory(entryAt, from, Math.min(count, from + LEAF_ENTRIES)))
    index.push({ id: entryAt(from).id, offset, length: leaf.length, run: 0 })
    offset += leaf.length
    leaves.push(leaf)
  }
  const found = (at: number): Entry => {
    const entry = index[at]
    if (entry === undefined) throw new Error('no such leaf')
    return entry
  }
  return { root: await packBytes(writeDirectory(found, 0, index.length)), leaves: Buffer.concat(leaves) }
}
