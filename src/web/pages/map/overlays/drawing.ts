import { latLng, latLngBounds, type LeafletMouseEvent } from 'leaflet'
import { effect } from '@preact/signals'
import { type Point, type ShapeGeometry, shapesOf } from '../../../../shared/mesh/overlay.ts'
import { api, send } from '../../../api.ts'
import { enlargement } from '../../../parts/map/occupied.ts'
import { createSheet, type Frame } from '../../../parts/map/sheet.ts'
import { say } from '../../../parts/notice.tsx'
import { overlayTexts } from '../../../strings/mesh/overlays.ts'
import { createTip } from '../layers/tip.ts'
import type { MapParts } from '../view.ts'
import { type Overlay, wantedOverlay } from './known.ts'
import { createBreath } from './breath.ts'

export type OverlayDrawing = {
  show(overlays: readonly Overlay[]): void
  stop(): void
}

/** A shape in pixels of the map at zoom 0: `x0 y0 x1 y1 …` for each of its lines, and the box around them. */
type Drawn = {
  readonly kind: ShapeGeometry['type']
  readonly lines: readonly Float64Array[]
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
  readonly colour: string | null
  readonly text: string
}

type Kept = { readonly id: number; readonly shapes: Drawn[]; readonly ended: AbortController }

/** Points that are drawn before other work gets its turn. */
const POINTS_A_STEP = 4000
/** Of a place, and how far from a shape a press still counts, in pixels. */
const PLACE_PX = 5
const REACH_PX = 10

/** Shapes of overlays below the nodes. Nothing in them is more than lines and text. */
export function createOverlayDrawing({ map, dots, palette, onRecolour }: MapParts): OverlayDrawing {
  let kept: readonly Kept[] = []
  const sheet = createSheet(map, { pane: 'overlays', zIndex: 380, isPatient: true }, function* (frame) {
    let points = 0
    for (const { shapes } of kept) {
      for (const shape of shapes) {
        points += drawShape(frame, shape, palette()('--accent'))
        if (points < POINTS_A_STEP) continue
        points = 0
        yield
      }
    }
  })
  const stopRecolouring = onRecolour(sheet.redraw)
  const tip = createTip(map)
  const find = (at: LeafletMouseEvent) => {
    const scale = map.getZoomScale(map.getZoom(), 0)
    const { x, y } = map.project(at.latlng, 0)
    const reach = REACH_PX / scale
    const all = kept.flatMap(({ shapes }) => shapes)
    return all.findLast((shape) => shape.text !== '' && touches(shape, x, y, reach))
  }
  const press = (event: LeafletMouseEvent) => {
    const found = dots.hits(event.containerPoint, REACH_PX).length > 0 ? undefined : find(event)
    if (found === undefined) tip.hide()
    else tip.show(event.latlng, found.text)
  }
  map.on('click', press)
  map.on('movestart zoomstart', tip.hide)
  const fit = (id: number) => {
    const boxes = kept.find((each) => each.id === id)?.shapes ?? []
    if (boxes.length === 0) return
    const bounds = latLngBounds([])
    for (const { left, top, right, bottom } of boxes) {
      bounds.extend(map.unproject([left, top], 0)).extend(map.unproject([right, bottom], 0))
    }
    map.fitBounds(bounds, { padding: [40, 40], maxZoom: 15, animate: false })
  }
  const load = async ({ id, name }: Overlay) => {
    const mine: Kept = { id, shapes: [], ended: new AbortController() }
    kept = [...kept, mine]
    try {
      const answer = await send(api.map.overlays[':id'].$get({ param: { id: String(id) } }))
      await readLines(answer.body, mine.ended.signal, (line) => {
        for (const shape of readShapes(line, (point) => map.project(latLng(point[1], point[0]), 0))) {
          mine.shapes.push(shape)
        }
      })
    } catch {
      if (mine.ended.signal.aborted) return
      kept = kept.filter((each) => each !== mine)
      say(overlayTexts.notLoaded(name))
    }
    sheet.redraw()
    if (wantedOverlay.peek() === id) {
      fit(id)
      wantedOverlay.value = null
    }
  }
  const stopWanting = effect(() => {
    const id = wantedOverlay.value
    if (id === null || !kept.some((each) => each.id === id && each.shapes.length > 0)) return
    fit(id)
    wantedOverlay.value = null
  })
  return {
    show(overlays) {
      const wanted = new Set(overlays.map(({ id }) => id))
      for (const each of kept) if (!wanted.has(each.id)) each.ended.abort()
      kept = kept.filter(({ id }) => wanted.has(id))
      for (const overlay of overlays) if (!kept.some(({ id }) => id === overlay.id)) void load(overlay)
      tip.hide()
      sheet.redraw()
    },
    stop() {
      for (const { ended } of kept) ended.abort()
      stopRecolouring()
      stopWanting()
      map.off('click', press)
      map.off('movestart zoomstart', tip.hide)
    },
  }
}

/** Takes each line of the file, in slices between which the page answers. */
async function readLines(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  signal: AbortSignal,
  take: (line: string) => void,
): Promise<void> {
  const breathe = createBreath()
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    const lines = (rest + read.value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (signal.aborted) return void reader?.cancel()
      take(line)
      await breathe()
    }
  }
}

/** The shapes of a line. Cleaned once more: a restored backup may hold whatever somebody wrote into it. */
function readShapes(line: string, project: (point: Point) => { x: number; y: number }): Drawn[] {
  const json = line.replace(/,$/, '')
  if (!json.startsWith('{"type":"Feature",')) return []
  const found = shapesOf(JSON.parse(json))
  return typeof found === 'string'
    ? []
    : found.map(({ geometry, properties }) => drawnOf(geometry, properties, project))
}

function drawnOf(
  { type, coordinates }: ShapeGeometry,
  { name, description, colour }: { readonly name?: string; readonly description?: string; readonly colour?: string },
  project: (point: Point) => { x: number; y: number },
): Drawn {
  const all = type === 'Point' ? [[coordinates]] : type === 'LineString' ? [coordinates] : coordinates
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity]
  const lines = all.map((points) => {
    const line = new Float64Array(2 * points.length)
    for (const [index, point] of points.entries()) {
      const { x, y } = project(point)
      line[2 * index] = x
      line[2 * index + 1] = y
      left = Math.min(left, x)
      right = Math.max(right, x)
      top = Math.min(top, y)
      bottom = Math.max(bottom, y)
    }
    return line
  })
  const text = [name, description].filter((part) => part !== undefined).join(': ')
  return { kind: type, lines, left, top, right, bottom, colour: colour ?? null, text }
}

/** Returns how many points it looked at. */
function drawShape({ pen, x, y, scale, touches: isSeen }: Frame, shape: Drawn, usual: string): number {
  const { kind, lines, left, top, right, bottom, colour } = shape
  const at = (px: number, py: number) => ({ x: px, y: py })
  const [from, to] = [at(left, top), at(right, bottom)]
  if (!isSeen(x(from), y(from), x(to), y(to), PLACE_PX)) return 1
  const times = enlargement()
  pen.strokeStyle = pen.fillStyle = colour ?? usual
  pen.lineWidth = 2 * times
  pen.lineJoin = 'round'
  pen.beginPath()
  let points = 0
  for (const line of lines) {
    points += line.length / 2
    if (kind === 'Point') {
      const size = PLACE_PX * times
      pen.rect(x(from) - size, y(from) - size, 2 * size, 2 * size)
    } else trace(pen, line, { x, y }, 1 / scale)
    if (kind === 'Polygon') pen.closePath()
  }
  if (kind !== 'LineString') {
    pen.globalAlpha = kind === 'Point' ? 0.5 : 0.12
    pen.fill('evenodd')
    pen.globalAlpha = 1
  }
  pen.stroke()
  return points
}

/** A line without the points that are closer than `least` to the one before. */
function trace(
  pen: CanvasRenderingContext2D,
  line: Float64Array,
  { x, y }: Pick<Frame, 'x' | 'y'>,
  least: number,
): void {
  let [lastX, lastY] = [Number.NaN, Number.NaN]
  const last = line.length - 2
  for (let index = 0; index <= last; index += 2) {
    const [px, py] = [line[index] ?? 0, line[index + 1] ?? 0]
    if (index > 0 && index < last && Math.abs(px - lastX) < least && Math.abs(py - lastY) < least) continue
    const place = { x: px, y: py }
    if (index === 0) pen.moveTo(x(place), y(place))
    else pen.lineTo(x(place), y(place))
    lastX = px
    lastY = py
  }
}

/** Whether a place lies on the shape, or in its area. */
function touches({ kind, lines, left, top, right, bottom }: Drawn, x: number, y: number, reach: number): boolean {
  if (x < left - reach || x > right + reach || y < top - reach || y > bottom + reach) return false
  if (kind === 'Point') return true
  let isInside = false
  for (const line of lines) {
    const count = line.length / 2
    for (let index = kind === 'Polygon' ? 0 : 1; index < count; index += 1) {
      const before = index === 0 ? count - 1 : index - 1
      const [ax, ay] = [line[2 * before] ?? 0, line[2 * before + 1] ?? 0]
      const [bx, by] = [line[2 * index] ?? 0, line[2 * index + 1] ?? 0]
      if (isNear(ax, ay, bx, by, x, y, reach)) return true
      if (kind === 'Polygon' && ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) isInside = !isInside
    }
  }
  return isInside
}

function isNear(ax: number, ay: number, bx: number, by: number, x: number, y: number, reach: number): boolean {
  const [dx, dy] = [bx - ax, by - ay]
  const length = dx * dx + dy * dy
  const part = length === 0 ? 0 : Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length))
  return Math.hypot(ax + part * dx - x, ay + part * dy - y) <= reach
}
