import { type Palette, readPalette } from '../../../parts/map/colour.ts'
import { SIGNAL_COLOURS, signalOf } from '../../../parts/mesh/snr.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import type { Places } from './data.ts'
import { latestOf, type Pair, signalOfPair } from './links.ts'

export type Shown = {
  readonly pairs: readonly Pair[]
  readonly places: Places
  readonly receivers: ReadonlySet<number>
  /** Nodes without which others are lost. */
  readonly cuts: ReadonlySet<number>
  readonly chosen: number | null
  readonly now: number
  /** The nodes are still being arranged. */
  readonly isRough: boolean
  /** A few characters. */
  nameOf(nodeNum: number): string
}

export type GraphDrawing = {
  show(shown: Shown): void
  recolour(): void
  /** Everything in sight. */
  fit(): void
  zoom(factor: number): void
  /** The nearest node from the chosen one in this direction, or the one in the middle; null: there is none. */
  next(x: number, y: number): number | null
  destroy(): void
}

/** How far from a node a press still counts, in pixels. */
const REACH_PX = { mouse: 12, touch: 22 } as const
/** A press that moved further is no press. */
const STILL_PX = 6
const SCALES = { min: 0.02, max: 6 } as const
/** Names are drawn from this scale on; of the chosen node and its neighbours always. */
const NAMED_SCALE = 1.1
const MARGIN_PX = 36
/** Names at once; more would lie on each other. A crowded picture is twice as large. */
const MAX_NAMES = { usual: 150, crowded: 300 } as const
/** Lines shorter than this have no arrow. */
const ARROW_PX = 24
/** More links than this are drawn without dashes. */
const CROWDED = 1500
/** So long after the last move the whole of a crowded picture is drawn again. */
const REST_MS = 160
/** A crowded picture is larger than its box, by this share of it on each side: moved, it shows what was beside. */
const EDGE = 0.2
/** It is stretched at most as much as this until it is drawn again. */
const STRETCH = 2

type Point = { readonly x: number; readonly y: number }

/** A canvas that is drawn whole. `onChoose` gets the pressed node, or null. */
export function createGraph(box: HTMLElement, onChoose: (nodeNum: number | null) => void): GraphDrawing {
  const canvas = document.createElement('canvas')
  box.append(canvas)
  const pen = canvas.getContext('2d')
  let colours = readPalette()
  let shown: Shown | null = null
  let view = { x: 0, y: 0, scale: 1 }
  let isFitted = true
  let frame = 0
  let rest: ReturnType<typeof setTimeout> | undefined
  /** What the canvas shows; null: it must be drawn again, and cannot be moved. */
  let finished: Finished | null = null
  const size = () => ({ width: box.clientWidth, height: box.clientHeight })
  const turn = () => {
    if (frame === 0) frame = requestAnimationFrame(draw)
  }
  const ask = () => {
    finished = null
    turn()
  }
  const draw = () => {
    frame = 0
    if (pen === null || shown === null) return
    if (isFitted) view = fitted(shown.places, size())
    if (finished !== null && reaches(finished, view, size())) {
      canvas.style.transform = transformTo(finished.view, view)
      return
    }
    const isCrowded = shown.pairs.length > CROWDED
    canvas.classList.toggle('is-wide', isCrowded)
    canvas.style.transform = ''
    const share = isCrowded ? 1 + 2 * EDGE : 1
    const whole = { width: share * box.clientWidth, height: share * box.clientHeight }
    const ratio = devicePixelRatio
    const [wide, high] = [Math.round(whole.width * ratio), Math.round(whole.height * ratio)]
    if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high })
    pen.setTransform(ratio, 0, 0, ratio, 0, 0)
    pen.clearRect(0, 0, whole.width, whole.height)
    const isRough = shown.isRough || rest !== undefined
    const project = onScreen(view, whole)
    drawGraph(pen, { ...shown, isRough }, { project, ...whole }, view.scale, colours)
    finished = isCrowded ? { view, whole, isAll: areAllIn(shown.places, project, whole) } : null
  }
  const moved = () => {
    isFitted = false
    clearTimeout(rest)
    rest = setTimeout(() => {
      rest = undefined
      ask()
    }, REST_MS)
    turn()
  }
  const zoomAt = (factor: number, at: Point) => {
    const scale = Math.max(SCALES.min, Math.min(SCALES.max, view.scale * factor))
    const { width, height } = size()
    const [dx, dy] = [at.x - width / 2, at.y - height / 2]
    // The place under the pointer stays there.
    const by = 1 / view.scale - 1 / scale
    view = { x: view.x + dx * by, y: view.y + dy * by, scale }
    moved()
  }
  const pointers = new Map<number, Point>()
  let begun: Point | null = null
  const placeOf = ({ clientX, clientY }: MouseEvent): Point => {
    const { left, top } = box.getBoundingClientRect()
    return { x: clientX - left, y: clientY - top }
  }
  const press = (event: PointerEvent) => {
    box.setPointerCapture(event.pointerId)
    pointers.set(event.pointerId, placeOf(event))
    begun = pointers.size === 1 ? placeOf(event) : null
  }
  const move = (event: PointerEvent) => {
    const before = pointers.get(event.pointerId)
    if (before === undefined) return
    const at = placeOf(event)
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1]
    pointers.set(event.pointerId, at)
    if (begun !== null && far(begun, at) > STILL_PX) begun = null
    if (begun !== null) return
    view = { ...view, x: view.x - (at.x - before.x) / view.scale, y: view.y - (at.y - before.y) / view.scale }
    if (other !== undefined) {
      const middle = { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 }
      zoomAt(far(at, other) / Math.max(1, far(before, other)), middle)
    }
    moved()
  }
  const release = (event: PointerEvent) => {
    pointers.delete(event.pointerId)
    if (begun === null || shown === null || event.type === 'pointercancel') return
    const reach = event.pointerType === 'mouse' ? REACH_PX.mouse : REACH_PX.touch
    const found = nearest(shown.places, onScreen(view, size()), begun)
    begun = null
    onChoose(found !== null && found.away <= reach ? found.nodeNum : null)
  }
  const wheel = (event: WheelEvent) => {
    event.preventDefault()
    zoomAt(Math.exp(-event.deltaY / 400), placeOf(event))
  }
  const gone = new AbortController()
  const { signal } = gone
  box.addEventListener('pointerdown', press, { signal })
  box.addEventListener('pointermove', move, { signal })
  box.addEventListener('pointerup', release, { signal })
  box.addEventListener('pointercancel', release, { signal })
  box.addEventListener('wheel', wheel, { passive: false, signal })
  const resized = new ResizeObserver(ask)
  resized.observe(box)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => {
    colours = readPalette()
    ask()
  }
  scheme.addEventListener('change', recolour)
  return {
    show(next) {
      const isOther = next.chosen !== shown?.chosen
      shown = next
      const at = next.chosen === null ? undefined : next.places.get(next.chosen)
      if (isOther && at !== undefined && !isFitted && !isInSight(onScreen(view, size())(at), size()))
        view = { ...view, x: at[0], y: at[1] }
      ask()
    },
    recolour,
    fit() {
      isFitted = true
      ask()
    },
    zoom(factor) {
      const { width, height } = size()
      zoomAt(factor, { x: width / 2, y: height / 2 })
    },
    next(x, y) {
      if (shown === null) return null
      const { places, chosen } = shown
      const from = chosen === null ? undefined : places.get(chosen)
      if (from === undefined) return nearest(places, ([px, py]) => ({ x: px, y: py }), view)?.nodeNum ?? null
      let best: { nodeNum: number; cost: number } | null = null
      for (const [nodeNum, [px, py]] of places) {
        const along = (px - from[0]) * x + (py - from[1]) * y
        const aside = Math.abs((px - from[0]) * y) + Math.abs((py - from[1]) * x)
        const cost = along + 2 * aside
        if (nodeNum !== chosen && along > aside && (best === null || cost < best.cost)) best = { nodeNum, cost }
      }
      return best?.nodeNum ?? null
    },
    destroy() {
      cancelAnimationFrame(frame)
      clearTimeout(rest)
      gone.abort()
      resized.disconnect()
      scheme.removeEventListener('change', recolour)
      canvas.remove()
    },
  }
}

/** A finished canvas: its size, and whether all nodes are on it. */
type Finished = { readonly view: View; readonly whole: Size; readonly isAll: boolean }

/** Whether it shows all that belongs into the box, moved and stretched. */
function reaches({ view, whole, isAll }: Finished, to: View, { width, height }: Size): boolean {
  const stretched = to.scale / view.scale
  if (stretched > STRETCH || stretched < 1 / STRETCH) return false
  return (
    isAll ||
    (Math.abs(to.x - view.x) * to.scale <= (stretched * whole.width - width) / 2 &&
      Math.abs(to.y - view.y) * to.scale <= (stretched * whole.height - height) / 2)
  )
}

function areAllIn(places: Places, project: Project, { width, height }: Size): boolean {
  return [...places.values()].every((place) => {
    const { x, y } = project(place)
    return x >= 0 && y >= 0 && x <= width && y <= height
  })
}

/** Moves a canvas whose middle is that of its box. Pixels stay whole unless they are stretched. */
function transformTo(from: View, to: View): string {
  const stretched = to.scale / from.scale
  const pixels = (way: number) => (stretched === 1 ? Math.round(way * to.scale) : way * to.scale)
  return `translate(${pixels(from.x - to.x)}px, ${pixels(from.y - to.y)}px) scale(${stretched})`
}

const far = (a: Point, b: Point) => Math.hypot(a.x - b.x, a.y - b.y)

type Size = { readonly width: number; readonly height: number }
type View = Point & { readonly scale: number }
type Project = (place: readonly [number, number]) => Point

function onScreen({ x, y, scale }: View, { width, height }: Size): Project {
  return ([px, py]) => ({ x: (px - x) * scale + width / 2, y: (py - y) * scale + height / 2 })
}

function isInSight({ x, y }: Point, { width, height }: Size): boolean {
  return x > MARGIN_PX && y > MARGIN_PX && x < width - MARGIN_PX && y < height - MARGIN_PX
}

function fitted(places: Places, { width, height }: Size): View {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity]
  for (const [x, y] of places.values()) {
    left = Math.min(left, x)
    right = Math.max(right, x)
    top = Math.min(top, y)
    bottom = Math.max(bottom, y)
  }
  if (left > right) return { x: 0, y: 0, scale: 1 }
  const room = Math.min((width - 2 * MARGIN_PX) / (right - left || 1), (height - 2 * MARGIN_PX) / (bottom - top || 1))
  const scale = Math.max(SCALES.min, Math.min(2, room))
  return { x: (left + right) / 2, y: (top + bottom) / 2, scale }
}

function nearest(places: Places, project: Project, to: Point): { nodeNum: number; away: number } | null {
  let best: { nodeNum: number; away: number } | null = null
  for (const [nodeNum, place] of places) {
    const away = far(project(place), to)
    if (best === null || away < best.away) best = { nodeNum, away }
  }
  return best
}

/** Lines of one look, which are drawn at once: thousands of single ones would take too long. */
type Batch = { readonly pair: Pair; readonly isOfChosen: boolean; readonly isOld: boolean; readonly lines: Line[] }
type Line = { readonly a: Point; readonly b: Point; readonly isOneWay: boolean }

function drawGraph(
  pen: CanvasRenderingContext2D,
  { pairs, places, receivers, cuts, chosen, now, isRough, nameOf }: Shown,
  { project, width, height }: Size & { readonly project: Project },
  scale: number,
  colours: Palette,
): void {
  const near = new Set(
    pairs.flatMap(({ a, b }) => (a === chosen ? [b] : b === chosen ? [a] : [])).concat(chosen === null ? [] : [chosen]),
  )
  const points = new Map<number, Point>()
  for (const [num, place] of places) points.set(num, project(place))
  const isOutside = (x: number, y: number) =>
    x < -MARGIN_PX || y < -MARGIN_PX || x > width + MARGIN_PX || y > height + MARGIN_PX
  const batches = new Map<string, Batch>()
  const isCrowded = pairs.length > CROWDED
  // While a crowded picture moves, some of its lines stand for all.
  const step = isCrowded && isRough ? Math.ceil(pairs.length / CROWDED) : 1
  for (const [index, pair] of pairs.entries()) {
    if (index % step !== 0 && pair.a !== chosen && pair.b !== chosen) continue
    const [from, to] = [points.get(pair.a), points.get(pair.b)]
    if (from === undefined || to === undefined || isBeside(from, to, width, height)) continue
    const isOfChosen = pair.a === chosen || pair.b === chosen
    const isOld = now - latestOf(pair) > DAY_MS
    const key = `${isOfChosen} ${isOld} ${signalOf(signalOfPair(pair))}`
    const batch = batches.get(key) ?? { pair, isOfChosen, isOld, lines: [] }
    batches.set(key, batch)
    const [a, b] = pair.there === null ? [to, from] : [from, to]
    batch.lines.push({ a, b, isOneWay: pair.there === null || pair.back === null })
  }
  for (const batch of [...batches.values()].toSorted((x, y) => Number(x.isOfChosen) - Number(y.isOfChosen)))
    drawBatch(pen, batch, { isDim: chosen !== null && !batch.isOfChosen, isCrowded, scale }, colours)
  pen.setLineDash([])
  pen.globalAlpha = 1
  const radius = Math.max(2.5, Math.min(7, 5 * scale))
  const shown = [...points].filter(([, { x, y }]) => !isOutside(x, y))
  for (const isDim of [true, false]) {
    for (const isReceiver of [true, false]) {
      pen.globalAlpha = isDim ? 0.25 : 1
      pen.fillStyle = colours(isReceiver ? '--accent' : '--text')
      pen.beginPath()
      for (const [num, { x, y }] of shown) {
        if ((chosen !== null && !near.has(num)) !== isDim || receivers.has(num) !== isReceiver) continue
        if (isReceiver) pen.rect(x - radius - 1, y - radius - 1, 2 * radius + 2, 2 * radius + 2)
        else {
          pen.moveTo(x + radius, y)
          pen.arc(x, y, radius, 0, 2 * Math.PI)
        }
      }
      pen.fill()
    }
  }
  pen.globalAlpha = 1
  pen.lineWidth = 2
  for (const [num, point] of shown) {
    if (cuts.has(num)) ring(pen, point, radius + 4, colours('--bad'))
    if (num === chosen) ring(pen, point, radius + 7, colours('--accent'))
  }
  pen.font = '600 12px system-ui, sans-serif'
  pen.textAlign = 'center'
  pen.lineJoin = 'round'
  pen.lineWidth = 3
  pen.strokeStyle = colours('--surface')
  pen.fillStyle = colours('--text')
  const isNamed = (num: number) => near.has(num) || (chosen === null && (cuts.has(num) || scale >= NAMED_SCALE))
  for (const [num, { x, y }] of shown
    .filter(([num]) => isNamed(num))
    .slice(0, MAX_NAMES[isCrowded ? 'crowded' : 'usual'])) {
    const name = nameOf(num)
    pen.strokeText(name, x, y + radius + 16)
    pen.fillText(name, x, y + radius + 16)
  }
}

/** Whether a line is surely out of sight. */
function isBeside(a: Point, b: Point, width: number, height: number): boolean {
  return Math.max(a.x, b.x) < 0 || Math.max(a.y, b.y) < 0 || Math.min(a.x, b.x) > width || Math.min(a.y, b.y) > height
}

type Look = { readonly isDim: boolean; readonly isCrowded: boolean; readonly scale: number }

function drawBatch(
  pen: CanvasRenderingContext2D,
  { pair, isOfChosen, isOld, lines }: Batch,
  { isDim, isCrowded, scale }: Look,
  colours: Palette,
): void {
  const colour = colours(SIGNAL_COLOURS[signalOf(signalOfPair(pair))])
  pen.globalAlpha = isDim ? 0.1 : isOld ? 0.4 : isCrowded ? 0.55 : 0.75
  pen.strokeStyle = colour
  pen.fillStyle = colour
  pen.lineWidth = Math.max(0.75, Math.min(2, scale * 1.5)) + (isOfChosen ? 1 : 0)
  // Dashes of thousands of lines take long to draw.
  pen.setLineDash(isOld && (!isCrowded || isOfChosen) ? [4, 4] : [])
  pen.beginPath()
  for (const { a, b } of lines) {
    pen.moveTo(a.x, a.y)
    pen.lineTo(b.x, b.y)
  }
  pen.stroke()
  if (isDim) return
  pen.beginPath()
  for (const { a, b, isOneWay } of lines) if (isOneWay) addArrow(pen, a, b)
  pen.fill()
}

function ring(pen: CanvasRenderingContext2D, { x, y }: Point, radius: number, colour: string): void {
  pen.strokeStyle = colour
  pen.beginPath()
  pen.arc(x, y, radius, 0, 2 * Math.PI)
  pen.stroke()
}

/** In the middle of a line, towards `to`. */
function addArrow(pen: CanvasRenderingContext2D, from: Point, to: Point): void {
  const length = far(from, to)
  if (length < ARROW_PX) return
  const [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length]
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2]
  pen.moveTo(x + 5 * ux, y + 5 * uy)
  pen.lineTo(x - 4 * ux - 4 * uy, y - 4 * uy + 4 * ux)
  pen.lineTo(x - 4 * ux + 4 * uy, y - 4 * uy - 4 * ux)
  pen.closePath()
}
