/** A rectangle in pixels of the map's box. */
export type Box = { readonly x: number; readonly y: number; readonly width: number; readonly height: number }

/** The texts already on the map, so that none is drawn over another. */
export type Occupied = {
  isFree(box: Box): boolean
  take(box: Box): void
}

/**
 * The size in pixels of the cells in which boxes are looked up, so that thousands of dots need not be compared with
 * each other.
 */
const CELL_PX = 64

export function createOccupied(): Occupied {
  const cells = new Map<string, Box[]>()
  return {
    isFree: (box) => cellsOf(box).every((cell) => !cells.get(cell)?.some((other) => overlap(box, other))),
    take(box) {
      for (const cell of cellsOf(box)) {
        const there = cells.get(cell)
        if (there === undefined) cells.set(cell, [box])
        else there.push(box)
      }
    },
  }
}

function cellsOf({ x, y, width, height }: Box): string[] {
  const found: string[] = []
  for (let column = Math.floor(x / CELL_PX); column * CELL_PX < x + width; column++) {
    for (let row = Math.floor(y / CELL_PX); row * CELL_PX < y + height; row++) found.push(`${column} ${row}`)
  }
  return found
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

const widths = new Map<string, number>()
let pen: CanvasRenderingContext2D | null = null

/** This many rem in pixels: they follow the reader's text size. */
export function remPx(rem: number): number {
  return rem * Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
}

/** The largest text size at a desk, in pixels. */
const MAX_AT_DESK_PX = 19

/** How many times as large as at a desk everything on the map is: on a wall as its text, at least 1. */
export function enlargement(): number {
  return Math.max(1, remPx(1) / MAX_AT_DESK_PX)
}

/** The width of a text on the map in pixels, without drawing it. `family` is a design token. */
export function textWidth(text: string, family: '--font' | '--mono', sizePx: number): number {
  const key = `${family} ${sizePx} ${text}`
  const known = widths.get(key)
  if (known !== undefined) return known
  pen ??= document.createElement('canvas').getContext('2d')
  if (pen === null) return text.length * sizePx
  pen.font = `600 ${sizePx}px ${getComputedStyle(document.documentElement).getPropertyValue(family)}`
  const width = Math.ceil(pen.measureText(text).width)
  widths.set(key, width)
  return width
}
