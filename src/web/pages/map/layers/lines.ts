import { divIcon, type LatLng, type LayerGroup, layerGroup, type Map as LeafletMap, marker, point } from 'leaflet'
import { distance } from '../../../measure.ts'
import { t } from '../../../strings.ts'
import type { Palette, Token } from '../../../parts/map/colour.ts'
import { type Occupied, remPx, textWidth } from '../../../parts/map/occupied.ts'
import type { Frame, Place } from '../../../parts/map/sheet.ts'
import type { Dots } from './nodes.ts'
import { decibels, SIGNAL_COLOURS, signalOf } from '../../../parts/mesh/snr.ts'
import type { Way } from '../../../parts/mesh/traceroute.ts'

export type Link = {
  readonly nodeNum: number
  readonly neighborNum: number
  /** Null: unknown, because a broker lies in between. */
  readonly snr: number | null
  readonly timestamp: number
  readonly viaMqtt?: boolean
  /** Of packets; undefined: the node only reported that it hears the other. */
  readonly count?: number
}
export type Spot = { readonly latitude: number; readonly longitude: number; readonly time: number }

export type ShownLines = {
  /** Who hears whom. */
  readonly links: readonly Link[]
  /** With the signal written on each link, and both directions side by side. */
  readonly areLinksNumbered: boolean
  /** The newest first. */
  readonly ways: readonly Way[]
  /** Everything except the routes is dimmed. */
  readonly isRoute: boolean
}

export type Lines = {
  show(shown: ShownLines): void
  draw(frame: Frame): Iterable<void>
  /** Places the signals where there is room along their lines, and hides those without room. */
  placeSignals(occupied: Occupied): void
}

/** How far a line bends to its right, as a share of its length, so that both directions lie side by side. */
const BEND = 0.12
/** More signals than these would hide the nodes. */
const MAX_SIGNALS = 60
const DIMMED = 0.25

/** Whether all of it is known, whether there are unknown nodes in between, or a broker. */
const DASHES = { whole: [], gap: [3, 8], broker: [10, 5] } as const satisfies Record<string, readonly number[]>

/** One straight or bent line between two places. */
type Stroke = {
  readonly from: Place
  readonly to: Place
  readonly token: Token
  readonly snr: number | null
  readonly dash: keyof typeof DASHES
  /** Its length; null: not written on it. */
  readonly meters: number | null
}

export function createLines(map: LeafletMap, dots: Dots, palette: () => Palette): Lines {
  // Above everything else.
  map.createPane('signals').style.zIndex = '630'
  const labels = layerGroup().addTo(map)
  let shown: ShownLines = { links: [], areLinksNumbered: false, ways: [], isRoute: false }
  let found: { version: number; zoom: number; links: Stroke[]; ways: Stroke[] } | null = null
  let signals: Signal[] = []
  let signalsKey = ''
  // Nodes move, and form clusters depending on the zoom, so the ends are looked up again then.
  const strokes = () => {
    const [version, zoom] = [dots.version(), map.getZoom()]
    if (found?.version !== version || found.zoom !== zoom) {
      const links = strokesOfLinks(shown, dots, map)
      const ways = shown.ways.flatMap((way) => strokesOfWay(way, dots))
      found = { version, zoom, links, ways: newestOfEach(ways) }
    }
    return found
  }
  const label = () => {
    const { links, ways } = strokes()
    const numbered = [...ways, ...(shown.areLinksNumbered ? links : [])].slice(0, MAX_SIGNALS)
    const key = JSON.stringify(numbered)
    if (key === signalsKey) return
    signalsKey = key
    labels.clearLayers()
    signals = numbered.map((stroke) => createSignal(map, stroke, labels))
  }
  return {
    show(next) {
      shown = next
      found = null
    },
    *draw(frame) {
      const { links, ways } = strokes()
      const colours = palette()
      const dimmed = shown.isRoute ? DIMMED : 1
      const isBent = shown.areLinksNumbered
      yield* strokeAll(frame, links, { colours, isBent, width: isBent ? 2 : 1.5, alpha: (isBent ? 0.9 : 0.7) * dimmed })
      yield* strokeAll(frame, ways, { colours, isBent: true, width: 3, alpha: 1, halo: colours('--surface') })
    },
    placeSignals(occupied) {
      label()
      for (const signal of signals) signal.place(occupied)
    },
  }
}

/**
 * From the neighbour to the node that hears it. Straight lines between the same two ends become one, with the best
 * signal.
 */
function strokesOfLinks({ links, areLinksNumbered }: ShownLines, dots: Dots, map: LeafletMap): Stroke[] {
  const best = new Map<string, Stroke>()
  const ids = new Map<Place, number>()
  const idOf = (place: Place) => {
    const known = ids.get(place) ?? ids.size
    ids.set(place, known)
    return known
  }
  for (const { nodeNum, neighborNum, snr, viaMqtt } of links) {
    const from = dots.drawnAt(neighborNum)
    const to = dots.drawnAt(nodeNum)
    if (from === undefined || to === undefined || from === to) continue
    const [a, b] = [idOf(from), idOf(to)]
    const key = areLinksNumbered || a < b ? `${a} ${b}` : `${b} ${a}`
    const known = best.get(key)
    if (known !== undefined && (known.snr ?? Number.NEGATIVE_INFINITY) >= (snr ?? Number.NEGATIVE_INFINITY)) continue
    // Both directions are as long as each other.
    const isMeasured = areLinksNumbered && !best.has(`${b} ${a}`)
    const [start, end] = [dots.reportedAt(neighborNum), dots.reportedAt(nodeNum)]
    const meters = isMeasured && start !== undefined && end !== undefined ? map.distance(start, end) : null
    best.set(key, { from, to, snr, token: SIGNAL_COLOURS[signalOf(snr)], dash: viaMqtt ? 'broker' : 'whole', meters })
  }
  return [...best.values()]
}

/** The first line of each pair of places: those of older routes would lie under it. */
function newestOfEach(strokes: readonly Stroke[]): Stroke[] {
  const taken = new Map<Place, Set<Place>>()
  return strokes.filter(({ from, to }) => {
    const ends = taken.get(from) ?? new Set()
    taken.set(from, ends)
    return !ends.has(to) && ends.add(to)
  })
}

/** Hop by hop. A hop is dashed if nodes in between are unknown or have no position. */
function strokesOfWay({ nodes, snr }: Way, dots: Dots): Stroke[] {
  const strokes: Stroke[] = []
  let last: { at: Place; index: number } | null = null
  for (const [index, nodeNum] of nodes.entries()) {
    const at = nodeNum === null ? undefined : dots.drawnAt(nodeNum)
    if (at === undefined) continue
    if (last !== null && last.at !== at) {
      const isWhole = index - last.index === 1
      const heard = isWhole ? (snr[index - 1] ?? null) : null
      const token = SIGNAL_COLOURS[signalOf(heard)]
      strokes.push({ from: last.at, to: at, snr: heard, token, dash: isWhole ? 'whole' : 'gap', meters: null })
    }
    last = { at, index }
  }
  return strokes
}

type Manner = {
  readonly colours: Palette
  readonly isBent: boolean
  readonly width: number
  readonly alpha: number
  readonly halo?: string
}

/**
 * The number of lines that a canvas draws efficiently in one path: with thousands, it compares each with all others.
 */
const AT_ONCE = 40

/** Lines that touch the sheet, those of one colour together. */
function* strokeAll(
  frame: Frame,
  strokes: readonly Stroke[],
  { colours, isBent, width, alpha, halo }: Manner,
): Generator<void> {
  const { pen } = frame
  const groups = new Map<string, Stroke[]>()
  for (const stroke of strokes) {
    if (!isInSight(frame, stroke)) continue
    const key = `${stroke.token} ${stroke.dash}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [stroke])
    else group.push(stroke)
  }
  const follow = function* (group: readonly Stroke[]): Generator<void> {
    for (let at = 0; at < group.length; at += AT_ONCE) {
      pen.beginPath()
      for (const stroke of group.slice(at, at + AT_ONCE)) trace(frame, stroke, isBent)
      pen.stroke()
      yield
    }
  }
  // Round ends of thousands of thin lines cost more than they are worth.
  pen.lineCap = halo === undefined ? 'butt' : 'round'
  if (halo !== undefined) {
    pen.strokeStyle = halo
    pen.lineWidth = 2 * width
    pen.globalAlpha = 0.7 * alpha
    for (const group of groups.values()) yield* follow(group)
  }
  pen.lineWidth = width
  pen.globalAlpha = alpha
  for (const group of groups.values()) {
    const [first] = group
    if (first === undefined) continue
    pen.strokeStyle = colours(first.token)
    pen.setLineDash(DASHES[first.dash])
    yield* follow(group)
  }
  pen.setLineDash([])
  pen.globalAlpha = 1
}

function isInSight(frame: Frame, { from, to }: Stroke): boolean {
  const [x1, y1, x2, y2] = [frame.x(from), frame.y(from), frame.x(to), frame.y(to)]
  const margin = BEND * Math.hypot(x2 - x1, y2 - y1) + 4
  return frame.touches(Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2), margin)
}

function trace(frame: Frame, { from, to }: Stroke, isBent: boolean): void {
  const { pen } = frame
  pen.moveTo(frame.x(from), frame.y(from))
  if (!isBent) {
    pen.lineTo(frame.x(to), frame.y(to))
    return
  }
  const control = controlOf(from, to)
  pen.quadraticCurveTo(frame.x(control), frame.y(control), frame.x(to), frame.y(to))
}

/** The control point of a flat arc to the right of the line from `from` to `to`. */
function controlOf(from: Place, to: Place): Place {
  const [x, y] = [to.x - from.x, to.y - from.y]
  return { x: from.x + x / 2 - y * BEND * 2, y: from.y + y / 2 + x * BEND * 2 }
}

type Signal = { place(occupied: Occupied): void }

/** Positions for a signal along its line, the best one first. */
const PARTS = [0.5, 0.38, 0.62, 0.26, 0.74]
const LABEL_REM = 0.75
const LABEL_HEIGHT_REM = 1.25
/** Arrow, gap and border of a label. */
const LABEL_EXTRA_REM = 1.625

/** The signal on a line, its length if asked for, and an arrow in its direction. */
function createSignal(map: LeafletMap, { from, to, snr, dash, meters }: Stroke, onto: LayerGroup): Signal {
  const heard = dash === 'broker' ? t.map.byMqtt : decibels(snr)
  const text = meters === null ? heard : `${heard} · ${distance(meters)}`
  const box = document.createElement('span')
  box.className = `hop-label snr-${signalOf(snr)}`
  const arrow = document.createElement('i')
  box.append(arrow, text)
  const control = controlOf(from, to)
  const places = PARTS.map((part) => {
    const rest = 1 - part
    const on = (a: number, b: number, c: number) => a * rest * rest + 2 * b * rest * part + c * part * part
    const slope = (a: number, b: number, c: number) => rest * (b - a) + part * (c - b)
    return {
      at: map.unproject(point(on(from.x, control.x, to.x), on(from.y, control.y, to.y)), 0),
      angle: Math.atan2(slope(from.y, control.y, to.y), slope(from.x, control.x, to.x)),
    }
  })
  const label = marker(places[0]?.at ?? [0, 0], {
    icon: divIcon({ className: 'hop-place', html: box, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'signals',
  }).addTo(onto)
  const width = textWidth(text, '--font', remPx(LABEL_REM)) + remPx(LABEL_EXTRA_REM)
  const height = remPx(LABEL_HEIGHT_REM)
  const roomAt = (at: LatLng) => {
    const { x, y } = map.latLngToContainerPoint(at)
    return { x: x - width / 2, y: y - height / 2, width, height }
  }
  return {
    place(occupied) {
      const found = places.find(({ at }) => occupied.isFree(roomAt(at)))
      box.classList.toggle('crowded', found === undefined)
      if (found === undefined) return
      occupied.take(roomAt(found.at))
      label.setLatLng(found.at)
      arrow.style.rotate = `${found.angle}rad`
    },
  }
}
