import type { Area } from '../../../app/mesh/map/region/area.ts'

// Tile ids of PMTiles 3: tiles of lower zoom levels first, those of a level along a Hilbert curve.

/** Ids from `from` to before `to`. */
type Span = { readonly from: number; readonly to: number }
/** Ascending, without gaps of zero. */
export type Cover = readonly Span[]

/** The first id of a zoom level. */
export function firstIdOf(zoom: number): number {
  return (4 ** zoom - 1) / 3
}

/** The position of a tile on the curve of its level. */
function onCurve(zoom: number, x: number, y: number): number {
  let found = 0
  let [left, top] = [x, y]
  for (let half = 2 ** (zoom - 1); half >= 1; half /= 2) {
    const isRight = (left & half) !== 0
    const isBelow = (top & half) !== 0
    found += half * half * (isRight ? (isBelow ? 2 : 3) : isBelow ? 1 : 0)
    left &= half - 1
    top &= half - 1
    if (isBelow) continue
    if (isRight) [left, top] = [half - 1 - left, half - 1 - top]
    ;[left, top] = [top, left]
  }
  return found
}

/** The tiles of an area at all zoom levels from 0, as spans of ids. */
export function coverOf({ bounds, maxZoom }: Area): Cover {
  return Array.from({ length: maxZoom + 1 }, (_, zoom) => coverAt(bounds, zoom)).flat()
}

function coverAt([west, south, east, north]: Area['bounds'], zoom: number): Span[] {
  const size = 2 ** zoom
  const first = (at: number) => Math.min(size - 1, Math.max(0, Math.floor(at * size)))
  const last = (at: number) => Math.min(size - 1, Math.max(0, Math.ceil(at * size) - 1))
  const left = first(eastward(west))
  const top = first(southward(north))
  const wanted = {
    left,
    top,
    right: Math.max(left, last(eastward(east))),
    bottom: Math.max(top, last(southward(south))),
  }
  const found: Span[] = []
  addSquares(found, zoom, 0, 0, 0, wanted)
  return merged(found.toSorted((a, b) => a.from - b.from))
}

type Rectangle = { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number }

/** Each square of a higher level is one stretch of the curve: a whole one inside the rectangle is not divided. */
function addSquares(found: Span[], zoom: number, level: number, x: number, y: number, wanted: Rectangle): void {
  const side = 2 ** (zoom - level)
  const [left, top] = [x * side, y * side]
  if (left > wanted.right || left + side <= wanted.left || top > wanted.bottom || top + side <= wanted.top) return
  const isInside =
    left >= wanted.left && left + side - 1 <= wanted.right && top >= wanted.top && top + side - 1 <= wanted.bottom
  if (isInside || level === zoom) {
    const from = firstIdOf(zoom) + onCurve(level, x, y) * side * side
    found.push({ from, to: from + side * side })
    return
  }
  for (const [right, below] of [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ] as const)
    addSquares(found, zoom, level + 1, x * 2 + right, y * 2 + below, wanted)
}

function merged(spans: readonly Span[]): Span[] {
  const all: Span[] = []
  for (const { from, to } of spans) {
    const last = all.at(-1)
    if (last?.to === from) all[all.length - 1] = { from: last.from, to }
    else all.push({ from, to })
  }
  return all
}

/** 0 to 1 from the west to the east of the square web map. */
function eastward(longitude: number): number {
  return (longitude + 180) / 360
}

/** 0 to 1 from its north to its south. */
function southward(latitude: number): number {
  return (1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2
}

/** The index of the first span that ends after an id. */
export function spanAfter(cover: Cover, id: number): number {
  let [low, high] = [0, cover.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((cover[middle]?.to ?? Infinity) > id) high = middle
    else low = middle + 1
  }
  return low
}
