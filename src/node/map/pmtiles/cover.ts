import { nextTurn } from '../../../app/base/pacing/next-turn.ts'
import type { Area } from '../../../app/mesh/map/region/area.ts'

// Tile ids of PMTiles 3: tiles of lower zoom levels first, those of a level along a Hilbert curve.

/** Ids from `from` to before `to`. */
type Span = { readonly from: number; to: number }
/** Ascending. Spans of one zoom level do not touch each other. */
export type Cover = readonly Readonly<Span>[]

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

/** Squares that are looked at before other work gets its turn. */
const SLICE = 2000

/** The tiles of an area at all zoom levels from 0, as spans of ids. */
export async function coverOf({ bounds, maxZoom }: Area): Promise<Cover> {
  const all: Span[] = []
  for (let zoom = 0; zoom <= maxZoom; zoom++) await addSpans(all, rectangleOf(bounds, zoom), zoom)
  return all
}

/** Columns and rows of tiles, all included. */
type Rectangle = { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number }

function rectangleOf([west, south, east, north]: Area['bounds'], zoom: number): Rectangle {
  const size = 2 ** zoom
  const first = (at: number) => Math.min(size - 1, Math.max(0, Math.floor(at * size)))
  const last = (at: number) => Math.min(size - 1, Math.max(0, Math.ceil(at * size) - 1))
  const left = first(eastward(west))
  const top = first(southward(north))
  return { left, top, right: Math.max(left, last(eastward(east))), bottom: Math.max(top, last(southward(south))) }
}

/** A square of tiles, and its position on the curve of its level. */
type Square = { readonly level: number; readonly x: number; readonly y: number; readonly at: number }

/**
 * Each square of a lower level is one stretch of the curve: a whole one inside the rectangle is not divided. Squares are
 * visited along the curve.
 */
async function addSpans(all: Span[], { left, top, right, bottom }: Rectangle, zoom: number): Promise<void> {
  const first = firstIdOf(zoom)
  const waiting: Square[] = [{ level: 0, x: 0, y: 0, at: 0 }]
  for (let seen = 1; ; seen++) {
    const square = waiting.pop()
    if (square === undefined) return
    if (seen % SLICE === 0) await nextTurn()
    const { level, x, y, at } = square
    const side = 2 ** (zoom - level)
    const [west, north] = [x * side, y * side]
    const [east, south] = [west + side - 1, north + side - 1]
    if (west > right || east < left || north > bottom || south < top) continue
    if (level < zoom && !(west >= left && east <= right && north >= top && south <= bottom)) {
      waiting.push(...quartersOf(square))
      continue
    }
    const from = first + at * side * side
    const last = all.at(-1)
    if (last?.to === from && from > first) last.to = from + side * side
    else all.push({ from, to: from + side * side })
  }
}

/** The last one on the curve first. */
function quartersOf({ level, x, y }: Square): Square[] {
  const corners = [
    [x * 2, y * 2],
    [x * 2 + 1, y * 2],
    [x * 2, y * 2 + 1],
    [x * 2 + 1, y * 2 + 1],
  ] as const
  return corners
    .map(([left, top]) => ({ level: level + 1, x: left, y: top, at: onCurve(level + 1, left, top) }))
    .toSorted((a, b) => b.at - a.at)
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
