import { DamagedArchive } from '../pmtiles/directory.ts'
import { createNumbers } from './numbers.ts'

/** No tile is larger, compressed. */
export const MAX_TILE_BYTES = 8 * 1024 * 1024

/** The different tiles of a region, in the order of their first ids, which is that of the new file. */
export type Contents = {
  count(): number
  /** Of all together. */
  bytes(): number
  /** Within the tiles of the planet. */
  sourceOf(content: number): number
  lengthOf(content: number): number
  /** Within the tiles of the new file. */
  targetOf(content: number): number
  /** All contents, those that lie in this order in the planet before the others. */
  inReadingOrder(): Iterable<number>
  /** Adds a content, unless it is there; returns its number. Throws DamagedArchive. */
  add(offset: number, length: number): number
}

/**
 * In a clustered archive a content is either behind all before it, or one that an earlier tile has already. So a search
 * in the ascending ones finds most, and a map needs only those whose first tile is outside of the region.
 */
export function createContents(): Contents {
  const sources = createNumbers()
  const lengths = createNumbers()
  const targets = createNumbers()
  const ascending = createNumbers()
  const earlier = new Map<number, number>()
  let bytes = 0
  let highest = -1

  const append = (offset: number, length: number): number => {
    if (length > MAX_TILE_BYTES) throw new DamagedArchive('size of a tile')
    sources.push(offset)
    lengths.push(length)
    targets.push(bytes)
    bytes += length
    return sources.count() - 1
  }
  const findAscending = (offset: number): number | undefined => {
    let [low, high] = [0, ascending.count()]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (sources.at(ascending.at(middle)) < offset) low = middle + 1
      else high = middle
    }
    const content = low < ascending.count() ? ascending.at(low) : undefined
    return content !== undefined && sources.at(content) === offset ? content : undefined
  }
  return {
    count: sources.count,
    bytes: () => bytes,
    sourceOf: sources.at,
    lengthOf: lengths.at,
    targetOf: targets.at,
    *inReadingOrder() {
      for (let i = 0; i < ascending.count(); i++) yield ascending.at(i)
      yield* [...earlier].toSorted(([a], [b]) => a - b).map(([, content]) => content)
    },
    add(offset, length) {
      if (offset > highest) {
        highest = offset
        const content = append(offset, length)
        ascending.push(content)
        return content
      }
      const known = findAscending(offset) ?? earlier.get(offset)
      if (known !== undefined) {
        if (lengths.at(known) !== length) throw new DamagedArchive('two lengths of a tile')
        return known
      }
      const content = append(offset, length)
      earlier.set(offset, content)
      return content
    },
  }
}
