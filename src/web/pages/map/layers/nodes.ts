import {
  latLng,
  type LatLng,
  latLngBounds,
  type LatLngBounds,
  type Map as LeafletMap,
  point,
  type Point,
} from 'leaflet'
import { type Node, precisionMeters } from '../../../state/mesh/nodes.ts'
import { BY_AGE, type Colouring } from '../colouring/colouring.ts'
import { besideOf, groupNear } from './clusters.ts'
import type { Palette } from '../../../parts/map/colour.ts'
import { enlargement } from '../../../parts/map/occupied.ts'
import type { Frame, Place } from '../../../parts/map/sheet.ts'

/** How nodes are drawn. */
export type NodeLook = {
  readonly dots: boolean
  readonly precision: boolean
  readonly clusters: boolean
  readonly colouring: Colouring
}

export type ShownNodes = {
  readonly placed: readonly Node[]
  readonly now: number
  readonly chosen: number | null
  /** These nodes are never part of a cluster. */
  readonly kept: ReadonlySet<number>
  /** All others are dimmed; null: none are. */
  readonly bright: ReadonlySet<number> | null
  readonly look: NodeLook
}

export type Dots = {
  show(shown: ShownNodes): void
  draw(frame: Frame): void
  /** The areas in which nodes without an exact position are. */
  drawCells(frame: Frame): void
  /** The place of the node itself, anywhere within its precision. */
  locate(nodeNum: number): LatLng | undefined
  /** What the node says: if rounded, the middle of its area. */
  reportedAt(nodeNum: number): LatLng | undefined
  /** Where it may be: undefined if its position is exact, or not known. */
  areaOf(nodeNum: number): LatLngBounds | undefined
  /** Where it is drawn: at its own place, or at that of its cluster. */
  drawnAt(nodeNum: number): Place | undefined
  /** A number that changes with any of these places. */
  version(): number
  /** Everything in sight, drawn as large as its number allows. */
  inSight(): readonly Unit[]
  /** What is drawn at a point of the map's box, the front one first; `reach` in pixels counts if nothing is hit. */
  hits(at: Point, reach: number): readonly Unit[]
}

/** A node with its dot, or several nodes with one dot for all. */
export type Unit = {
  readonly nodes: readonly [Node, ...Node[]]
  readonly at: LatLng
  readonly world: Place
  readonly radius: number
  readonly isChosen: boolean
}

/** `at` and `world`: where it is drawn; `reported`: what the node itself says. */
type Spot = { readonly node: Node; readonly at: LatLng; readonly world: Place; readonly reported: LatLng }

/** If this many are in sight, they are drawn smaller, so that they stay apart. */
const SIZES = [
  [800, 0.5],
  [250, 0.7],
] as const
/** Fewer nodes than these form no clusters. */
const MIN_FOR_CLUSTERS = 100
/** From this zoom level on, nodes stand alone. */
export const CLUSTERS_END_ZOOM = 17
/** Roles that relay packets of others, and are drawn larger. */
export const RELAYS: ReadonlySet<string> = new Set([
  'ROUTER',
  'ROUTER_LATE',
  'ROUTER_CLIENT',
  'REPEATER',
  'CLIENT_BASE',
])
const DIMMED = 0.25
/** Own radios are diamonds with a core: their shape tells them apart. These are shares of the radius of a dot. */
const LOCAL_SIZE = 1.45
const CORE_SIZE = 0.4
/** Metres of one pixel of zoom 0 at the equator (the circumference of Web Mercator over 256 pixels). */
const METERS_PER_PIXEL = 40_075_016.686 / 256

export function createDots(map: LeafletMap, palette: () => Palette): Dots {
  let shown: ShownNodes = {
    placed: [],
    now: 0,
    chosen: null,
    kept: new Set(),
    bright: null,
    look: { dots: true, precision: true, clusters: true, colouring: BY_AGE },
  }
  let spots = new Map<number, Spot>()
  let version = 0
  let grouped: Grouped | null = null
  let size = 1
  // Regrouped when the zoom or a place has changed, before anything asks where a node is.
  const current = () => {
    const zoom = map.getZoom()
    const times = enlargement()
    if (grouped?.version !== version || grouped.zoom !== zoom || grouped.times !== times) {
      const units = groupSpots([...spots.values()], shown, map, zoom, times)
      const byNode = new Map(units.flatMap((unit) => unit.nodes.map((node) => [node.nodeNum, unit])))
      grouped = { version, zoom, times, units, byNode }
    }
    return grouped
  }
  const unitsInSight = () => {
    if (!shown.look.dots) return []
    const bounds = map.getBounds().pad(0.05)
    return current().units.filter(({ at }) => bounds.contains(at))
  }
  const radiusOf = (unit: Unit) => unit.radius * (unit.nodes.length > 1 || unit.isChosen ? 1 : size)
  return {
    show(next) {
      const places = new Map(next.placed.flatMap((node) => spotOf(node, spots.get(node.nodeNum), map) ?? []))
      const isMoved = places.size !== spots.size || [...places].some(([num, spot]) => isOther(spot, spots.get(num)))
      const isRegrouped =
        isMoved ||
        next.kept !== shown.kept ||
        next.chosen !== shown.chosen ||
        next.look.clusters !== shown.look.clusters
      spots = places
      shown = next
      if (isRegrouped) version++
      else if (grouped !== null) grouped = renewed(grouped, spots)
    },
    draw(frame) {
      if (!shown.look.dots) return
      const inSight = unitsInSight().length
      size = SIZES.find(([least]) => inSight > least)?.[1] ?? 1
      const paint = createPaint(frame, palette(), shown, size)
      for (const unit of current().units) {
        const [x, y] = [frame.x(unit.world), frame.y(unit.world)]
        if (frame.touches(x, y, x, y, 2 * unit.radius)) paint(unit, x, y, radiusOf(unit))
      }
    },
    drawCells(frame) {
      if (!shown.look.precision) return
      const colours = palette()
      const colourOf = colourBy(shown, colours)
      const { pen } = frame
      pen.lineWidth = 1
      for (const { nodes } of current().units) {
        const meters = nodes.length > 1 ? null : precisionMeters(nodes[0].position?.precisionBits ?? null)
        const at = spots.get(nodes[0].nodeNum)?.reported
        if (meters === null || at === undefined) continue
        const world = map.project(at, 0)
        const radius = (meters / (METERS_PER_PIXEL * Math.cos((at.lat * Math.PI) / 180))) * frame.scale
        const [x, y] = [frame.x(world), frame.y(world)]
        // A cell that its dot hides need not be drawn.
        if (radius < 6 || !frame.touches(x, y, x, y, radius)) continue
        const dimmed = isDimmed(nodes, shown) ? DIMMED : 1
        pen.fillStyle = pen.strokeStyle = colourOf(nodes[0])
        pen.beginPath()
        pen.arc(x, y, radius, 0, 2 * Math.PI)
        pen.globalAlpha = 0.07 * dimmed
        pen.fill()
        pen.globalAlpha = 0.5 * dimmed
        pen.stroke()
      }
      pen.globalAlpha = 1
    },
    locate: (nodeNum) => spots.get(nodeNum)?.at,
    reportedAt: (nodeNum) => spots.get(nodeNum)?.reported,
    areaOf(nodeNum) {
      const spot = spots.get(nodeNum)
      const meters = precisionMeters(spot?.node.position?.precisionBits ?? null)
      return meters === null ? undefined : spot?.reported.toBounds(2 * meters)
    },
    drawnAt: (nodeNum) => current().byNode.get(nodeNum)?.world,
    version: () => version,
    inSight: () => unitsInSight().map((unit) => ({ ...unit, radius: radiusOf(unit) })),
    hits(at, reach) {
      if (!shown.look.dots) return []
      const { x, y } = map.containerPointToLayerPoint(at).add(map.getPixelOrigin())
      const scale = map.getZoomScale(map.getZoom(), 0)
      const near = current().units.flatMap((unit) => {
        const away = Math.hypot(unit.world.x * scale - x, unit.world.y * scale - y)
        return away <= radiusOf(unit) + reach ? { unit, away } : []
      })
      const hit = near.filter(({ unit, away }) => away <= Math.max(TARGET_PX, radiusOf(unit) + EDGE_PX))
      const found = hit.length > 0 ? hit : near.toSorted((a, b) => a.away - b.away).slice(0, 1)
      return found.map(({ unit }) => unit).toReversed()
    },
  }
}

/** The ring around a dot belongs to it. */
const EDGE_PX = 2
/** Half of the smallest target that everybody can press: of dots closer to each other, the user chooses one by name. */
const TARGET_PX = 12

/** Whether its place has changed, or whether it may join a cluster. */
function isOther({ at, node }: Spot, before: Spot | undefined): boolean {
  if (before === undefined || before.at !== at) return true
  const { isFavorite, isLocal, role } = before.node
  return node.isFavorite !== isFavorite || node.isLocal !== isLocal || node.role !== role
}

function spotOf(node: Node, before: Spot | undefined, map: LeafletMap): [number, Spot][] | null {
  const { position } = node
  if (position === null) return null
  const isSame = before?.at.lat === position.latitude && before.at.lng === position.longitude
  if (before !== undefined && isSame) return [[node.nodeNum, { ...before, node }]]
  const reported = latLng(position.latitude, position.longitude)
  const at = spread(node.nodeNum, reported, precisionMeters(position.precisionBits))
  return [[node.nodeNum, { node, at, world: map.project(at, 0), reported }]]
}

/** Of the radius of its area. Further out the dot could seem to be outside. */
const SPREAD = 0.75
const METERS_PER_DEGREE = 111_195

/**
 * A place within the precision of a rounded position, always the same for one node. In the middle of their areas, nodes
 * would lie on each other, and in a lattice that is nowhere in the mesh.
 */
function spread(nodeNum: number, reported: LatLng, meters: number | null): LatLng {
  if (meters === null) return reported
  // Multiples of these fractions fill a circle evenly.
  const [turn, out] = [(nodeNum * 0.754877666) % 1, (nodeNum * 0.569840291) % 1]
  const degrees = (meters * SPREAD * Math.sqrt(out)) / METERS_PER_DEGREE
  const { lat, lng } = reported
  return latLng(
    lat + degrees * Math.sin(turn * 2 * Math.PI),
    lng + (degrees * Math.cos(turn * 2 * Math.PI)) / Math.max(0.01, Math.cos((lat * Math.PI) / 180)),
  )
}

/** In drawing order: clusters, then the latest heard above the others, and the chosen one above all. */
function groupSpots(spots: readonly Spot[], shown: ShownNodes, map: LeafletMap, zoom: number, times: number): Unit[] {
  const mayJoin = shown.look.clusters && spots.length >= MIN_FOR_CLUSTERS && zoom < CLUSTERS_END_ZOOM
  const joins = (node: Node) =>
    mayJoin && !node.isLocal && !node.isFavorite && node.nodeNum !== shown.chosen && !shown.kept.has(node.nodeNum)
  // By number: who is heard last must not change the clusters.
  const joining = spots.filter(({ node }) => joins(node)).toSorted((a, b) => a.node.nodeNum - b.node.nodeNum)
  const groups = groupNear(joining, map.getZoomScale(zoom, 0) / times)
  const alone = groups.flatMap((group) => (group.length === 1 ? group : []))
  const single = [...spots.filter(({ node }) => !joins(node)), ...alone].toSorted(
    (a, b) => (a.node.lastHeard ?? 0) - (b.node.lastHeard ?? 0),
  )
  const units = single.map((spot) => unitOf(spot, shown, times))
  const scale = map.getZoomScale(zoom, 0)
  // Radios and favourites are never part of a cluster, and must not cover its number.
  const pins = units.flatMap(({ nodes: [node], world, radius }) =>
    joins(node) ? [] : [{ world, radius: radius / scale }],
  )
  return [
    ...groups.filter((group) => group.length > 1).flatMap((group) => clusterOf(group, map, times, scale, pins) ?? []),
    ...units.filter(({ isChosen }) => !isChosen),
    ...units.filter(({ isChosen }) => isChosen),
  ]
}

function unitOf({ node, at, world }: Spot, { chosen }: ShownNodes, times: number): Unit {
  const isChosen = node.nodeNum === chosen
  const radius = isChosen ? 10 : RELAYS.has(node.role ?? '') ? 8.5 : 6.5
  return { nodes: [node], at, world, isChosen, radius: radius * times }
}

/** `pins`: dots beside which it is drawn; their radius and `scale` are for the units of `world`. */
function clusterOf(
  group: readonly Spot[],
  map: LeafletMap,
  times: number,
  scale: number,
  pins: readonly { world: Place; radius: number }[],
): Unit | null {
  const [first, ...others] = group.map(({ node }) => node)
  if (first === undefined) return null
  const sum = group.reduce((all, { world }) => point(all.x + world.x, all.y + world.y), point(0, 0))
  const radius = (group.length < 10 ? 13 : group.length < 100 ? 16 : 20) * times
  const { x, y } = besideOf(sum.divideBy(group.length), radius / scale, pins)
  const world = point(x, y)
  return { nodes: [first, ...others], world, at: map.unproject(world, 0), radius, isChosen: false }
}

type Grouped = { version: number; zoom: number; times: number; units: readonly Unit[]; byNode: Map<number, Unit> }

/** The same groups with the latest values of their nodes. */
function renewed(grouped: Grouped, spots: ReadonlyMap<number, Spot>): Grouped {
  const latest = (node: Node) => spots.get(node.nodeNum)?.node ?? node
  const units = grouped.units.map((unit): Unit => {
    const [first, ...others] = unit.nodes
    return { ...unit, nodes: [latest(first), ...others.map(latest)] }
  })
  const byNode = new Map(units.flatMap((unit) => unit.nodes.map((node) => [node.nodeNum, unit])))
  return { ...grouped, units, byNode }
}

/** The places of all the nodes of a unit. */
export function boundsOf({ nodes }: Unit): LatLngBounds {
  return latLngBounds(
    nodes.flatMap(({ position }) => (position === null ? [] : latLng(position.latitude, position.longitude))),
  )
}

function isDimmed(nodes: readonly Node[], { bright }: ShownNodes): boolean {
  return bright !== null && !nodes.some(({ nodeNum }) => bright.has(nodeNum))
}

/** The colour of the class of each node. */
function colourBy({ now, look: { colouring } }: ShownNodes, colours: Palette): (node: Node) => string {
  return (node) => colours(colouring.tokens[colouring.classOf(node, now)] ?? '--faint')
}

function createPaint({ pen }: Frame, colours: Palette, shown: ShownNodes, size: number) {
  const times = enlargement()
  const { tokens, classOf } = shown.look.colouring
  const colourOf = colourBy(shown, colours)
  const disc = (x: number, y: number, radius: number) => {
    pen.beginPath()
    pen.arc(x, y, radius, 0, 2 * Math.PI)
  }
  const diamond = (x: number, y: number, radius: number) => {
    pen.beginPath()
    pen.moveTo(x, y - radius)
    pen.lineTo(x + radius, y)
    pen.lineTo(x, y + radius)
    pen.lineTo(x - radius, y)
    pen.closePath()
  }
  const paintNode = (node: Node, x: number, y: number, radius: number) => {
    const isChosen = node.nodeNum === shown.chosen
    const own = colourOf(node)
    const isHollow = classOf(node, shown.now) === tokens.length - 1
    const ring = isChosen ? '--text' : node.isFavorite ? '--warn' : null
    if (node.isLocal) diamond(x, y, radius * LOCAL_SIZE)
    else disc(x, y, radius)
    pen.fillStyle = isHollow ? colours('--surface') : own
    pen.fill()
    pen.strokeStyle = ring === null ? (isHollow ? own : colours('--surface')) : colours(ring)
    pen.lineWidth = times * (isChosen ? 3 : ring === null ? 2 * size : 2.5)
    pen.stroke()
    if (!node.isLocal) return
    disc(x, y, radius * CORE_SIZE)
    pen.fillStyle = isHollow ? own : colours('--surface')
    pen.fill()
  }
  /** Draws the number of nodes in a ring that shows the share of each class. */
  const paintCluster = (nodes: readonly Node[], x: number, y: number, radius: number) => {
    disc(x, y, radius + 2 * times)
    pen.fillStyle = colours('--raised')
    pen.fill()
    const counts = tokens.map(() => 0)
    for (const node of nodes) {
      const found = classOf(node, shown.now)
      counts[found] = (counts[found] ?? 0) + 1
    }
    let from = -Math.PI / 2
    pen.lineWidth = 4 * times
    for (const [index, token] of tokens.entries()) {
      const to = from + ((counts[index] ?? 0) / nodes.length) * 2 * Math.PI
      pen.beginPath()
      pen.arc(x, y, radius - times, from, to)
      pen.strokeStyle = colours(token)
      pen.stroke()
      from = to
    }
    pen.fillStyle = colours('--text')
    pen.font = `600 ${(nodes.length < 1000 ? 12 : 11) * times}px system-ui, sans-serif`
    pen.textAlign = 'center'
    pen.textBaseline = 'middle'
    pen.fillText(String(nodes.length), x, y + 0.5)
  }
  return ({ nodes }: Unit, x: number, y: number, radius: number) => {
    pen.globalAlpha = isDimmed(nodes, shown) ? DIMMED : 1
    if (nodes.length === 1) paintNode(nodes[0], x, y, radius)
    else paintCluster(nodes, x, y, radius)
    pen.globalAlpha = 1
  }
}
