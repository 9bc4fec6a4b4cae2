import { canvas, type Map as LeafletMap, type Point } from 'leaflet'

/** A place in pixels of the map at zoom 0, independent of the visible part. */
export type Place = Pick<Point, 'x' | 'y'>

export type Frame = {
  readonly pen: CanvasRenderingContext2D
  /** Pixels of the sheet for one pixel of the map at zoom 0. */
  readonly scale: number
  /** Where a place is on the sheet. */
  x(place: Place): number
  y(place: Place): number
  /** Whether the rectangle between two points of the sheet, and `margin` pixels around it, touches the sheet. */
  touches(left: number, top: number, right: number, bottom: number, margin: number): boolean
}

export type Sheet = {
  redraw(): void
  /** Takes it off the map, without its pixels, or puts it there and draws it again. */
  show(isShown: boolean): void
}

/** Draws everything, at once or in steps: after each of them the rest may wait for the next frame. */
type Draw = (frame: Frame) => Iterable<void> | void

/** Steps in one frame after a move: more would delay the next move. */
const STEPS_A_FRAME = 12

/**
 * One canvas, redrawn completely by `draw` after each move and on `redraw`, so that thousands of shapes need no
 * objects. While the map moves or zooms, the browser shifts the finished picture. The canvas fires `drawn` when its
 * picture is finished.
 */
export function createSheet(
  map: LeafletMap,
  {
    pane,
    zIndex,
    isPatient = false,
    padding = 0.3,
  }: {
    readonly pane: string
    readonly zIndex: number
    /** How far it reaches beyond the map's box, in parts of its size. */
    readonly padding?: number
    /** What is drawn anew may come in steps, too, because it takes long. */
    readonly isPatient?: boolean
  },
  draw: Draw,
): Sheet {
  const { style } = map.createPane(pane)
  style.zIndex = String(zIndex)
  // What lies below can still be pressed; clicks are found by their place.
  style.pointerEvents = 'none'
  const renderer = canvas({ pane, padding })
  let rest: Iterator<void> | null = null
  let turn = 0
  const proceed = (steps: number) => {
    for (let step = 0; step < steps && rest !== null; step++) if (rest.next().done === true) rest = null
    if (rest !== null) turn = requestAnimationFrame(() => proceed(STEPS_A_FRAME))
    else groundOf(renderer)?.pen.canvas.dispatchEvent(new Event('drawn'))
  }
  const drawAll = (steps: number) => {
    cancelAnimationFrame(turn)
    const ground = groundOf(renderer)
    if (ground === null) return
    const { pen, left, top, right, bottom } = ground
    pen.clearRect(left, top, right - left, bottom - top)
    const { x: originX, y: originY } = map.getPixelOrigin()
    const scale = map.getZoomScale(map.getZoom(), 0)
    const drawing = draw({
      pen,
      scale,
      x: (place) => place.x * scale - originX,
      y: (place) => place.y * scale - originY,
      touches: (l, t, r, b, margin) =>
        l - margin < right && r + margin > left && t - margin < bottom && b + margin > top,
    })
    rest = drawing?.[Symbol.iterator]() ?? null
    proceed(steps)
  }
  renderer.on('update', () => drawAll(STEPS_A_FRAME))
  renderer.on('remove', () => cancelAnimationFrame(turn))
  renderer.addTo(map)
  // Replaces a visible picture, which must not flicker.
  const redraw = () => drawAll(isPatient ? STEPS_A_FRAME : Number.POSITIVE_INFINITY)
  redraw()
  return { redraw, show: (isShown) => (isShown ? renderer.addTo(map) : renderer.remove()) }
}

type Ground = { pen: CanvasRenderingContext2D; left: number; top: number; right: number; bottom: number }

/** The context and the edges of Leaflet's canvas, which are private to it; null while it is on no map. */
function groundOf(renderer: object): Ground | null {
  const { _ctx: pen, _bounds: bounds }: { _ctx?: unknown; _bounds?: unknown } = renderer
  if (!(pen instanceof CanvasRenderingContext2D) || !isBounds(bounds)) return null
  const { min, max } = bounds
  return { pen, left: min.x, top: min.y, right: max.x, bottom: max.y }
}

function isBounds(value: unknown): value is { readonly min: Place; readonly max: Place } {
  return typeof value === 'object' && value !== null && 'min' in value && 'max' in value
}
