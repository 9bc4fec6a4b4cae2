import { PMTILES_HEADER_BYTES, readPmtilesHeader } from '../../../app/mesh/map/pmtiles-header.ts'
import type { Area } from '../../../app/mesh/map/region/area.ts'
import { DamagedArchive } from './directory.ts'

/** A stretch of the file. */
export type Section = { readonly offset: number; readonly length: number }

/** The parts of a header that `readPmtilesHeader` leaves out. */
export type Header = {
  readonly root: Section
  readonly metadata: Section
  readonly leaves: Section
  readonly tiles: Section
  /** Of directories and metadata. */
  readonly isPacked: boolean
  readonly tileCompression: number
  readonly tileType: number
  readonly maxZoom: number
}

/** The root directory lies in the first bytes of the file, so that one request gets it. */
export const START_BYTES = 16_384
export const GZIP = 2

/** Reads the header of a clustered file of `size` bytes. Throws DamagedArchive. */
export function readHeader(start: Uint8Array, size: number): Header {
  const known = readPmtilesHeader(start)
  if (known === null) throw new DamagedArchive('no PMTiles 3 file')
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength)
  const number = (at: number) => {
    const value = view.getBigUint64(at, true)
    if (value > BigInt(size)) throw new DamagedArchive('a section is outside of the file')
    return Number(value)
  }
  const section = (at: number): Section => {
    const found = { offset: number(at), length: number(at + 8) }
    if (found.offset + found.length > size) throw new DamagedArchive('a section is outside of the file')
    return found
  }
  if (view.getUint8(96) !== 1) throw new DamagedArchive('not clustered')
  const root = section(8)
  if (root.length === 0 || root.offset < PMTILES_HEADER_BYTES || root.offset + root.length > START_BYTES) {
    throw new DamagedArchive('place of the root directory')
  }
  return {
    root,
    metadata: section(24),
    leaves: section(40),
    tiles: section(56),
    isPacked: view.getUint8(97) === GZIP,
    tileCompression: view.getUint8(98),
    tileType: view.getUint8(99),
    maxZoom: known.maxZoom,
  }
}

/** A header for a clustered file with gzipped directories, whose sections follow each other in this order. */
export function writeHeader(parts: {
  readonly area: Area
  readonly of: Pick<Header, 'tileCompression' | 'tileType'>
  readonly rootBytes: number
  readonly metadataBytes: number
  readonly leafBytes: number
  readonly tileBytes: number
  readonly addressed: number
  readonly entries: number
  readonly contents: number
}): Buffer {
  const { area, of } = parts
  const header = Buffer.alloc(PMTILES_HEADER_BYTES)
  header.write('PMTiles\x03', 'latin1')
  let offset = PMTILES_HEADER_BYTES
  for (const [index, length] of [parts.rootBytes, parts.metadataBytes, parts.leafBytes, parts.tileBytes].entries()) {
    header.writeBigUInt64LE(BigInt(offset), 8 + index * 16)
    header.writeBigUInt64LE(BigInt(length), 16 + index * 16)
    offset += length
  }
  for (const [index, count] of [parts.addressed, parts.entries, parts.contents].entries())
    header.writeBigUInt64LE(BigInt(count), 72 + index * 8)
  header.set([1, GZIP, of.tileCompression, of.tileType, 0, area.maxZoom], 96)
  const [west, south, east, north] = area.bounds
  const e7 = (degrees: number) => Math.round(degrees * 1e7)
  for (const [index, degrees] of [west, south, east, north].entries()) header.writeInt32LE(e7(degrees), 102 + index * 4)
  header.writeUInt8(Math.min(area.maxZoom, 10), 118)
  header.writeInt32LE(e7((west + east) / 2), 119)
  header.writeInt32LE(e7((south + north) / 2), 123)
  return header
}
