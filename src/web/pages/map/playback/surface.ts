import type { Copies } from './copies.ts'
import { lay, type Raster } from './raster.ts'

/** Pixels of a side of the squares that are put on the canvas together. */
const SQUARE = 64

/**
 * The pixels of a canvas, kept and mixed here: without graphics hardware, a canvas takes several times as long for each
 * small picture. Nothing is read from the canvas, which some browsers forbid.
 */
export type Surface = {
  /** Keeps these copies, and nothing else, for the pictures that follow. */
  ground(pen: CanvasRenderingContext2D, copies: Copies): void
  /** Shows the copies on the ground: everything, or where they are and were. */
  paint(pen: CanvasRenderingContext2D, copies: Copies, isWhole: boolean): void
  /** Forgets all pixels. */
  drop(): void
}

export function createSurface(): Surface {
  let ground: Raster = EMPTY
  /** Where a row of squares is mixed: a second picture of the whole canvas would take as much memory as the first. */
  let row: { readonly image: ImageData; readonly raster: Raster } | null = null
  /** The squares of the last picture in which there is more than the ground; 1: there is. */
  let touched = new Uint8Array(0)
  const copyGround = ({ pixels }: Raster, top: number, high: number, [left, right]: readonly [number, number]) => {
    for (let y = 0; y < high; y++) {
      const begin = (top + y) * ground.width
      pixels.set(ground.pixels.subarray(begin + left, begin + right), y * ground.width + left)
    }
  }
  return {
    ground(pen, copies) {
      const { width, height } = pen.canvas
      if (ground.width === width && ground.height === height) ground.pixels.fill(0)
      else {
        ground = { pixels: new Int32Array(width * height), width, height }
        row = null
      }
      layCopies(ground, copies, scaleOf(pen))
    },
    paint(pen, copies, isWhole) {
      const { width, height } = ground
      // The map is hidden.
      if (width === 0 || height === 0) return
      row ??= rowOf(width)
      const { image, raster } = row
      const scale = scaleOf(pen)
      const columns = Math.ceil(width / SQUARE)
      const before = touched
      touched = squaresOf(copies, scale, ground)
      const isOld = (index: number) => isWhole || touched[index] === 1 || before[index] === 1
      for (let top = 0; top < height; top += SQUARE) {
        const first = (top / SQUARE) * columns
        const parts: [left: number, right: number][] = []
        for (let column = 0; column < columns; column++) {
          if (!isOld(first + column)) continue
          const begin = column
          while (column + 1 < columns && isOld(first + column + 1)) column++
          parts.push([begin * SQUARE, Math.min(width, (column + 1) * SQUARE)])
        }
        if (parts.length === 0) continue
        const high = Math.min(SQUARE, height - top)
        for (const part of parts) copyGround(raster, top, high, part)
        layCopies(raster, copies, { ...scale, top: scale.top - top })
        for (const [left, right] of parts) pen.putImageData(image, 0, top, left, 0, right - left, high)
      }
      for (const { picture, left, top } of copies) {
        if (picture.image !== null) pen.drawImage(picture.image, left, top, picture.width, picture.height)
      }
    },
    drop() {
      ground = EMPTY
      row = null
    },
  }
}

const EMPTY: Raster = { pixels: new Int32Array(0), width: 0, height: 0 }

/** Where a point of a sheet is among the pixels of its canvas. */
type Scale = { readonly times: number; readonly left: number; readonly top: number }

function scaleOf(pen: CanvasRenderingContext2D): Scale {
  const { a, e, f } = pen.getTransform()
  return { times: a, left: e, top: f }
}

/** Lays the copies that are pixels over others. */
function layCopies(onto: Raster, copies: Copies, { times, left, top }: Scale): void {
  for (const copy of copies) {
    const { raster } = copy.picture
    if (raster !== null) lay(onto, raster, Math.round(copy.left * times + left), Math.round(copy.top * times + top))
  }
}

function rowOf(width: number) {
  const image = new ImageData(width, SQUARE)
  return { image, raster: { pixels: new Int32Array(image.data.buffer), width, height: SQUARE } }
}

/** Marks the squares that copies touch, row after row. */
function squaresOf(copies: Copies, { times, left, top }: Scale, { width, height }: Raster): Uint8Array<ArrayBuffer> {
  const [columns, rows] = [Math.ceil(width / SQUARE), Math.ceil(height / SQUARE)]
  const found = new Uint8Array(columns * rows)
  for (const { picture, left: x, top: y } of copies) {
    const [begin, above] = [(x * times + left) / SQUARE, (y * times + top) / SQUARE]
    const end = Math.min(columns - 1, Math.floor(begin + (picture.width * times) / SQUARE))
    const below = Math.min(rows - 1, Math.floor(above + (picture.height * times) / SQUARE))
    for (let row = Math.max(0, Math.floor(above)); row <= below; row++) {
      for (let column = Math.max(0, Math.floor(begin)); column <= end; column++) found[row * columns + column] = 1
    }
  }
  return found
}
