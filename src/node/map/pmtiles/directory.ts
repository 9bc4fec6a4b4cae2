/** Tiles from `id` on, or with `run` 0 a directory of tiles from `id` on. `offset` is within their section of the file. */
export type Entry = { readonly id: number; readonly offset: number; readonly length: number; readonly run: number }

/** A file is no valid PMTiles 3, or not of the kinds that are read here. */
export class DamagedArchive extends Error {
  override name = 'DamagedArchive'
}

/** What the entries of a directory may refer to: ids from `from` to before `to`, and bytes of their sections. */
export type Within = {
  readonly from: number
  readonly to: number
  readonly tileBytes: number
  readonly leafBytes: number
}

/** Each entry takes at least a byte for each of its four numbers. */
const LEAST_ENTRY_BYTES = 4

/** Reads a decompressed directory (PMTiles 3, "Directory Serialization"). Throws DamagedArchive. */
export function readDirectory(bytes: Uint8Array, within: Within): Entry[] {
  const next = numbersOf(bytes)
  const count = next()
  if (count === 0 || count > bytes.length / LEAST_ENTRY_BYTES) throw new DamagedArchive('number of entries')
  const column = () => Float64Array.from({ length: count }, next)
  const [steps, runs, lengths, offsets] = [column(), column(), column(), column()]
  if (next.left() !== 0) throw new DamagedArchive('bytes after a directory')
  const entries: Entry[] = []
  let id = 0
  let free = within.from
  let end = 0
  for (let i = 0; i < count; i++) {
    id += steps[i] ?? 0
    const [run = 0, length = 0, given = 0] = [runs[i], lengths[i], offsets[i]]
    if (given === 0 && i === 0) throw new DamagedArchive('offset of the first entry')
    const offset = given === 0 ? end : given - 1
    end = offset + length
    if (id < free || id + run > within.to || id >= within.to) throw new DamagedArchive('order of entries')
    if (length === 0 || end > (run === 0 ? within.leafBytes : within.tileBytes))
      throw new DamagedArchive('bounds of an entry')
    free = id + Math.max(1, run)
    entries.push({ id, offset, length, run })
  }
  return entries
}

/** Reads numbers of the form of protobuf one after the other. */
function numbersOf(bytes: Uint8Array): { (): number; left(): number } {
  let at = 0
  const next = () => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++]
      if (byte === undefined) throw new DamagedArchive('a directory ends early')
      value += (byte & 127) * shift
      if (value > Number.MAX_SAFE_INTEGER || shift > Number.MAX_SAFE_INTEGER)
        throw new DamagedArchive('a number is too large')
      if (byte < 128) return value
    }
  }
  return Object.assign(next, { left: () => bytes.length - at })
}

/** The entries from `from` to before `to` as a directory, not yet compressed. At least one. */
export function writeDirectory(entryAt: (index: number) => Entry, from: number, to: number): Uint8Array {
  const out = createBytes()
  out.number(to - from)
  let id = 0
  for (let i = from; i < to; i++) {
    const entry = entryAt(i)
    out.number(entry.id - id)
    id = entry.id
  }
  for (let i = from; i < to; i++) out.number(entryAt(i).run)
  for (let i = from; i < to; i++) out.number(entryAt(i).length)
  let end = -1
  for (let i = from; i < to; i++) {
    const { offset, length } = entryAt(i)
    out.number(offset === end ? 0 : offset + 1)
    end = offset + length
  }
  return out.taken()
}

function createBytes(): { number(value: number): void; taken(): Uint8Array } {
  let bytes = new Uint8Array(4096)
  let length = 0
  return {
    number(value) {
      // The longest safe number takes eight bytes.
      if (length + 8 > bytes.length) {
        const larger = new Uint8Array(bytes.length * 2)
        larger.set(bytes)
        bytes = larger
      }
      let left = value
      for (; left >= 128; left = Math.floor(left / 128)) bytes[length++] = (left % 128) + 128
      bytes[length++] = left
    },
    taken: () => bytes.subarray(0, length),
  }
}
