import {
  type Canvas,
  canvas,
  circle,
  type Circle,
  circleMarker,
  type CircleMarker,
  divIcon,
  featureGroup,
  type LatLng,
  latLng,
  layerGroup,
  type Map as LeafletMap,
  marker,
} from 'leaflet'
import { age } from '../format.ts'
import { type Node, nodeName, precisionMeters, shortNameOf } from '../mesh.ts'
import { colour } from './colour.ts'
import { ageOf } from './map-filter.ts'

export type Dots = {
  show(placed: readonly Node[], now: number, chosen: number | null): void
  locate(nodeNum: number): LatLng | undefined
  /** Brings the chosen one before what was drawn since. */
  raise(): void
  /** After the scheme has changed. */
  recolour(): void
}

/** More names than these at once would hide the nodes. */
const MOST_LABELS = 60
const RELAYS: ReadonlySet<string> = new Set(['ROUTER', 'ROUTER_LATE', 'ROUTER_CLIENT', 'REPEATER', 'CLIENT_BASE'])
const AGE_COLOURS = ['--age-0', '--age-1', '--age-2'] as const

/** `look` is all that shows of the node: while it is the same nothing is drawn anew. */
type Drawn = { readonly dot: CircleMarker; cell: Circle | null; node: Node; look: string }
type Colours = Readonly<Record<string, string>>

export function createDots(map: LeafletMap, onChoose: (nodeId: string | null) => void): Dots {
  map.createPane('names').style.zIndex = '620'
  map.createPane('cells').style.zIndex = '380'
  const cellRenderer = canvas({ pane: 'cells', padding: 0.3 })
  const cells = layerGroup().addTo(map)
  const dots = featureGroup().addTo(map)
  const names = layerGroup().addTo(map)
  const drawn = new Map<number, Drawn>()
  const owners = new WeakMap<object, Node>()
  let last: { placed: readonly Node[]; now: number; chosen: number | null } = { placed: [], now: 0, chosen: null }
  // One for all dots, and an element instead of text: Leaflet would read markup out of a node's name.
  dots.bindTooltip((layer) => describeNode(owners.get(layer), last.now), { direction: 'top', offset: [0, -8] })
  const addDot = (at: LatLng, node: Node): Drawn => {
    const dot = circleMarker(at).addTo(dots)
    dot.on('click', () => onChoose(node.nodeId))
    return { dot, cell: null, node, look: '' }
  }
  const label = () => {
    names.clearLayers()
    const bounds = map.getBounds().pad(0.05)
    const inSight = [...drawn.values()].filter(({ dot }) => bounds.contains(dot.getLatLng()))
    for (const { dot, node } of inSight) {
      const isChosen = node.nodeNum === last.chosen
      if (!isChosen && (inSight.length > MOST_LABELS || node.shortName === null)) continue
      nameMarker(dot.getLatLng(), isChosen ? nodeName(node) : shortNameOf(node), isChosen).addTo(names)
    }
  }
  map.on('moveend', label)
  const raise = () => {
    if (last.chosen !== null) drawn.get(last.chosen)?.dot.bringToFront()
  }
  const show: Dots['show'] = (placed, now, chosen) => {
    last = { placed, now, chosen }
    const colours = readColours()
    const left = new Set(drawn.keys())
    for (const node of placed) {
      const at = placeOf(node)
      if (at === null) continue
      left.delete(node.nodeNum)
      const known = drawn.get(node.nodeNum) ?? addDot(at, node)
      drawn.set(node.nodeNum, known)
      known.node = node
      owners.set(known.dot, node)
      const look = lookOf(node, now, chosen, colours)
      if (known.look === look) continue
      known.look = look
      known.dot.setLatLng(at).setStyle(dotStyle(node, now, chosen, colours))
      known.dot.setRadius(node.nodeNum === chosen ? 10 : RELAYS.has(node.role ?? '') ? 8.5 : 6.5)
      known.cell?.remove()
      known.cell = cellOf(node, at, colours[AGE_COLOURS[ageOf(node, now)]] ?? '', cellRenderer)
      known.cell?.addTo(cells)
    }
    for (const nodeNum of left) {
      const gone = drawn.get(nodeNum)
      if (gone !== undefined) dots.removeLayer(gone.dot)
      gone?.cell?.remove()
      drawn.delete(nodeNum)
    }
    raise()
    label()
  }
  return {
    show,
    raise,
    locate: (nodeNum) => drawn.get(nodeNum)?.dot.getLatLng(),
    recolour: () => show(last.placed, last.now, last.chosen),
  }
}

export function placeOf({ position }: Node): LatLng | null {
  return position === null ? null : latLng(position.latitude, position.longitude)
}

// Once for all nodes: asking the page for a colour costs a layout.
function readColours(): Colours {
  const tokens = [...AGE_COLOURS, '--surface', '--text', '--warn', '--accent']
  return Object.fromEntries(tokens.map((token) => [token, colour(token)]))
}

function lookOf(node: Node, now: number, chosen: number | null, colours: Colours): string {
  const { position, isFavorite, isLocal, role, nodeNum } = node
  return JSON.stringify([position, isFavorite, isLocal, role, ageOf(node, now), nodeNum === chosen, colours])
}

function dotStyle(node: Node, now: number, chosen: number | null, colours: Colours) {
  const isChosen = node.nodeNum === chosen
  const ageIndex = ageOf(node, now)
  const own = colours[AGE_COLOURS[ageIndex]] ?? ''
  const surface = colours['--surface'] ?? ''
  // The old ones are hollow: their colour alone would not tell everybody.
  const isHollow = ageIndex === 2
  const ring = isChosen ? '--text' : node.isFavorite ? '--warn' : node.isLocal ? '--accent' : null
  return {
    color: (ring === null ? undefined : colours[ring]) ?? (isHollow ? own : surface),
    weight: isChosen ? 3 : ring === null ? 2 : 2.5,
    fillColor: isHollow ? surface : own,
    fillOpacity: 1,
    bubblingMouseEvents: false,
  }
}

function cellOf(node: Node, at: LatLng, color: string, renderer: Canvas): Circle | null {
  const radius = precisionMeters(node.position?.precisionBits ?? null)
  if (radius === null) return null
  const style = { color, weight: 1, opacity: 0.5, fillOpacity: 0.07, interactive: false }
  return circle(at, { radius, ...style, pane: 'cells', renderer })
}

function nameMarker(at: LatLng, text: string, isChosen: boolean) {
  const name = document.createElement('span')
  name.textContent = text
  return marker(at, {
    icon: divIcon({ className: isChosen ? 'map-name chosen' : 'map-name', html: name, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'names',
  })
}

function describeNode(node: Node | undefined, now: number): HTMLElement {
  const text = document.createElement('span')
  if (node !== undefined) {
    text.textContent = [nodeName(node), node.lastHeard === null ? '' : age(node.lastHeard, now)]
      .filter(Boolean)
      .join(' · ')
  }
  return text
}
