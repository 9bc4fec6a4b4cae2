import type { Map as LeafletMap } from 'leaflet'

/** A canvas on which nothing was drawn for so long rests. */
const REST_MS = 400
/** Pixels of the largest canvas of which there is a picture beside it: 20 MB. Screens with more have graphics hardware. */
const MAX_PIXELS = 5_000_000

type Waiting = { readonly timer: ReturnType<typeof setTimeout>; picture: HTMLCanvasElement | null }

/**
 * Shows the other canvases of a map as finished pictures while they rest, because a browser without graphics hardware
 * copies each canvas of a page whenever one of them has changed, but such a picture only once. `panes`: whose canvases
 * are left alone. Returns what undoes it.
 */
export function stillCanvases(map: LeafletMap, panes: readonly string[]): () => void {
  const { mapPane: box } = map.getPanes()
  const known = new Map<HTMLCanvasElement, Waiting>()
  const own = new Set(panes.map((pane) => map.getPane(pane)?.querySelector('canvas')))
  const thaw = (canvas: HTMLCanvasElement) => {
    const waiting = known.get(canvas)
    clearTimeout(waiting?.timer)
    waiting?.picture?.remove()
    canvas.hidden = false
    known.delete(canvas)
  }
  const thawAll = () => {
    for (const canvas of known.keys()) thaw(canvas)
  }
  const freeze = (canvas: HTMLCanvasElement) => {
    const waiting = known.get(canvas)
    if (waiting !== undefined) waiting.picture = pictureOf(canvas)
  }
  const wait = (canvas: HTMLCanvasElement) => {
    thaw(canvas)
    known.set(canvas, { timer: setTimeout(() => freeze(canvas), REST_MS), picture: null })
  }
  const onDrawn = ({ target }: Event) => {
    if (target instanceof HTMLCanvasElement && !own.has(target)) wait(target)
  }
  for (const canvas of box.querySelectorAll<HTMLCanvasElement>('.leaflet-pane > canvas')) {
    if (!own.has(canvas)) wait(canvas)
  }
  // It is not told to those around the canvas.
  box.addEventListener('drawn', onDrawn, { capture: true })
  // The map stretches its own canvases, and has them drawn again at the end.
  map.on('zoomstart', thawAll)
  return () => {
    box.removeEventListener('drawn', onDrawn, { capture: true })
    map.off('zoomstart', thawAll)
    thawAll()
  }
}

/** Puts a picture of a canvas in its place; null: it is not visible, or too large. */
function pictureOf(canvas: HTMLCanvasElement): HTMLCanvasElement | null {
  const { width, height } = canvas
  if (width === 0 || height === 0 || width * height > MAX_PIXELS || canvas.offsetWidth === 0) return null
  const sheet = new OffscreenCanvas(width, height)
  sheet.getContext('2d')?.drawImage(canvas, 0, 0)
  const picture = document.createElement('canvas')
  Object.assign(picture, { width, height, className: canvas.className })
  picture.style.cssText = canvas.style.cssText
  picture.getContext('bitmaprenderer')?.transferFromImageBitmap(sheet.transferToImageBitmap())
  canvas.hidden = true
  canvas.after(picture)
  return picture
}
