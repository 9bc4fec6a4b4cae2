import {
  type Canvas,
  canvas,
  circle,
  type Circle,
  circleMarker,
  type CircleMarker,
  featureGroup,
  type LatLng,
  latLng,
  layerGroup,
  type Map as LeafletMap,
} from 'leaflet'
import { age } from '../../../format.ts'
import { type Node, nodeName, precisionMeters } from '../../../state/mesh.ts'
import { colour } from './colour.ts'
import { ageOf } from '../filter.ts'

export type Dots = {
  show(placed: readonly Node[], now: number, chosen: number | null): void
  locate(nodeNum: number): LatLng | undefined
  /** Moves the selected node in front of later ones. */
  raise(): void
  /** Those in sight, drawn as large as their number allows. */
  inSight(): readonly Dot[]
  /** After the scheme has changed. */
  recolour(): void
}

export type Dot = { readonly node: Node; readonly at: LatLng; readonly radius: number; readonly isChosen: boolean }

/** With this many in sight they are drawn smaller, so that they stay apart. */
const SIZES = [
  [800, 0.5],
  [250, 0.7],
] as const
/** Roles that relay packets of others, and are drawn larger. */
export const RELAYS: ReadonlySet<string> = new Set([
  'ROUTER',
  'ROUTER_LATE',
  'ROUTER_CLIENT',
  'REPEATER',
  'CLIENT_BASE',
])
const AGE_COLOURS = ['--age-0', '--age-1', '--age-2'] as const

/** `look` is everything visible of the node: while it is the same, nothing is redrawn. */
type Drawn = { readonly dot: CircleMarker; cell: Circle | null; node: Node; look: string }
type Colours = Readonly<Record<string, string>>
type Shown = { readonly placed: readonly Node[]; readonly now: number; readonly chosen: number | null }

/** `size` is 1 where there is room for the dots. */
type Style = { readonly shown: Shown; readonly colours: Colours; readonly size: number }

export function createDots(map: LeafletMap, onChoose: (nodeId: string | null) => void): Dots {
  let last: Shown = { placed: [], now: 0, chosen: null }
  let size = 1
  const { drawn, draw, drop } = createPen(map, onChoose, () => last.now)
  const raise = () => {
    if (last.chosen !== null) drawn.get(last.chosen)?.dot.bringToFront()
  }
  const show: Dots['show'] = (placed, now, chosen) => {
    last = { placed, now, chosen }
    const colours = readColours()
    const left = new Set(drawn.keys())
    // The latest heard come first, and are drawn last: above the others.
    for (const node of placed.toReversed()) {
      const at = placeOf(node)
      if (at === null) continue
      left.delete(node.nodeNum)
      draw(node, at, { shown: last, colours, size })
    }
    for (const nodeNum of left) drop(nodeNum)
    raise()
  }
  const again = () => show(last.placed, last.now, last.chosen)
  return {
    show,
    raise,
    locate: (nodeNum) => drawn.get(nodeNum)?.dot.getLatLng(),
    recolour: again,
    inSight() {
      const bounds = map.getBounds().pad(0.05)
      const found = [...drawn.values()].filter(({ dot }) => bounds.contains(dot.getLatLng()))
      const before = size
      size = SIZES.find(([least]) => found.length > least)?.[1] ?? 1
      if (size !== before) again()
      return found.map(({ dot, node }) => {
        return { node, at: dot.getLatLng(), radius: dot.getRadius(), isChosen: node.nodeNum === last.chosen }
      })
    },
  }
}

/** Draws one node at a time: its dot, and the cell that it may be anywhere in. */
function createPen(map: LeafletMap, onChoose: (nodeId: string | null) => void, now: () => number) {
  map.createPane('cells').style.zIndex = '380'
  const renderer = canvas({ pane: 'cells', padding: 0.3 })
  const cells = layerGroup().addTo(map)
  const dots = featureGroup().addTo(map)
  const drawn = new Map<number, Drawn>()
  const owners = new WeakMap<object, Node>()
  // One for all dots, and an element instead of text: Leaflet would read markup out of a node's name.
  dots.bindTooltip((layer) => describeNode(owners.get(layer), now()), { direction: 'top', offset: [0, -8] })
  const addDot = (at: LatLng, node: Node): Drawn => {
    const dot = circleMarker(at).addTo(dots)
    dot.on('click', () => onChoose(node.nodeId))
    return { dot, cell: null, node, look: '' }
  }
  return {
    drawn,
    draw(node: Node, at: LatLng, style: Style) {
      const known = drawn.get(node.nodeNum) ?? addDot(at, node)
      drawn.set(node.nodeNum, known)
      known.node = node
      owners.set(known.dot, node)
      const look = lookOf(node, style)
      if (known.look === look) return
      known.look = look
      known.dot.setLatLng(at).setStyle(dotStyle(node, style))
      known.dot.setRadius(radiusOf(node, style))
      known.cell?.remove()
      known.cell = cellOf(node, at, style.colours[AGE_COLOURS[ageOf(node, style.shown.now)]] ?? '', renderer)
      known.cell?.addTo(cells)
    },
    drop(nodeNum: number) {
      const gone = drawn.get(nodeNum)
      if (gone !== undefined) dots.removeLayer(gone.dot)
      gone?.cell?.remove()
      drawn.delete(nodeNum)
    },
  }
}

function radiusOf(node: Node, { shown, size }: Style): number {
  if (node.nodeNum === shown.chosen) return 10
  return (RELAYS.has(node.role ?? '') ? 8.5 : 6.5) * size
}

export function placeOf({ position }: Node): LatLng | null {
  return position === null ? null : latLng(position.latitude, position.longitude)
}

// Once for all nodes: asking the page for a colour costs a layout.
function readColours(): Colours {
  const tokens = [...AGE_COLOURS, '--surface', '--text', '--warn', '--accent']
  return Object.fromEntries(tokens.map((token) => [token, colour(token)]))
}

function lookOf(node: Node, { shown: { now, chosen }, colours, size }: Style): string {
  const { position, isFavorite, isLocal, role, nodeNum } = node
  return JSON.stringify([position, isFavorite, isLocal, role, ageOf(node, now), nodeNum === chosen, size, colours])
}

function dotStyle(node: Node, { shown: { now, chosen }, colours, size }: Style) {
  const isChosen = node.nodeNum === chosen
  const ageIndex = ageOf(node, now)
  const own = colours[AGE_COLOURS[ageIndex]] ?? ''
  const surface = colours['--surface'] ?? ''
  // Old ones are hollow: colour alone is not visible to everybody.
  const isHollow = ageIndex === 2
  const ring = isChosen ? '--text' : node.isFavorite ? '--warn' : node.isLocal ? '--accent' : null
  return {
    color: (ring === null ? undefined : colours[ring]) ?? (isHollow ? own : surface),
    weight: isChosen ? 3 : ring === null ? 2 * size : 2.5,
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

function describeNode(node: Node | undefined, now: number): HTMLElement {
  const text = document.createElement('span')
  if (node !== undefined) {
    text.textContent = [nodeName(node), node.lastHeard === null ? '' : age(node.lastHeard, now)]
      .filter(Boolean)
      .join(' · ')
  }
  return text
}
