import type { Map as LeafletMap } from 'leaflet'
import type { Palette } from '../colour.ts'
import type { Frame } from '../sheet.ts'
import { EXTENT, type Piece } from './piece.ts'
import { levelsAt, type Pieces } from './pieces.ts'

/** The width of the world in pixels at zoom 0. */
const WORLD_PX = 256

/** A piece of the map, and the part of the world that it stands for: in pixels at zoom 0, also beyond 180° of longitude. */
export type Cell = { readonly piece: Piece; readonly left: number; readonly top: number; readonly side: number }

/** What is in sight at this level, and `margin` times as much around it. */
export function cellsInSight(map: LeafletMap, pieces: Pieces, z: number, margin: number): readonly Cell[] {
  const { min, max } = map.getPixelBounds()
  const side = (WORLD_PX * map.getZoomScale(map.getZoom(), 0)) / 2 ** z
  if (min === undefined || max === undefined) return []
  const [wide, high] = [(max.x - min.x) * margin, (max.y - min.y) * margin]
  const last = 2 ** z - 1
  const rows = range(Math.max(0, (min.y - high) / side), Math.min(last, (max.y + high) / side))
  return rows.flatMap((row) =>
    range((min.x - wide) / side, (max.x + wide) / side).flatMap((column) => {
      const inWorld = ((column % (last + 1)) + last + 1) % (last + 1)
      const piece = pieces.find(z, inWorld, row)
      const size = WORLD_PX / 2 ** z
      return piece === null ? [] : { piece, left: column * size, top: row * size, side: size }
    }),
  )
}

function range(from: number, to: number): readonly number[] {
  const first = Math.floor(from)
  return Array.from({ length: Math.max(0, Math.floor(to) - first + 1) }, (_, index) => first + index)
}

/** Where the corner of the cell's piece is, which may be larger than the cell, and pixels at zoom 0 for one of its units. */
export function unitsOf({ piece, left, top, side }: Cell): { left: number; top: number; unit: number } {
  const size = WORLD_PX / 2 ** piece.z
  const column = Math.round(left / side)
  const row = Math.round(top / side)
  const times = size / side
  return { left: Math.floor(column / times) * size, top: Math.floor(row / times) * size, unit: size / EXTENT }
}

/** Sea, land, coasts and borders. */
export function drawShapes(map: LeafletMap, pieces: Pieces, frame: Frame, colours: Palette): void {
  const { pen, scale } = frame
  const [z = 0] = levelsAt(map.getZoom())
  const cells = cellsInSight(map, pieces, z, 0.3)
  const each = (draw: (piece: Piece, pixel: number) => void) => {
    for (const cell of cells) {
      const { left, top, unit } = unitsOf(cell)
      pen.save()
      // A larger piece stands in for one that is not loaded yet.
      if (cell.piece.z !== z) clipTo(frame, cell)
      pen.translate(frame.x({ x: left, y: 0 }), frame.y({ x: 0, y: top }))
      pen.scale(unit * scale, unit * scale)
      draw(cell.piece, 1 / (unit * scale))
      pen.restore()
    }
  }
  pen.fillStyle = colours('--map-land')
  each(({ land }) => pen.fill(land, 'evenodd'))
  pen.strokeStyle = colours('--map-coast')
  // The cheapest: lines have thousands of corners. Dashes would be made for all of a line, also far out of sight.
  pen.lineJoin = 'bevel'
  each(({ coast }, pixel) => {
    pen.lineWidth = pixel
    pen.stroke(coast)
  })
  pen.strokeStyle = colours('--map-border')
  each(({ borders }, pixel) => {
    pen.lineWidth = pixel
    pen.stroke(borders)
  })
}

function clipTo({ pen, scale, x, y }: Frame, { left, top, side }: Cell): void {
  pen.beginPath()
  pen.rect(x({ x: left, y: 0 }), y({ x: 0, y: top }), side * scale, side * scale)
  pen.clip()
}
