import { type LatLng, latLngBounds, type LeafletMouseEvent, type Map as LeafletMap } from 'leaflet'
import { age, dateTime } from '../../../format.ts'
import { type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { t } from '../../../strings.ts'
import type { Tip } from './tip.ts'
import type { Trail } from './trail.ts'
import { boundsOf, CLUSTERS_END_ZOOM, type Dots, type Unit } from './nodes.ts'

/** How far from a dot a press still counts, in pixels: targets are 24 pixels wide for a mouse, 44 for a finger. */
const REACH_PX = { mouse: 8, finger: 16 } as const

/** A place, and where it is in the map's box, in pixels. */
export type Mark = { readonly at: LatLng; readonly x: number; readonly y: number }

export type Choice = {
  /** Null: nothing is chosen any more. */
  choose(nodeId: string | null): void
  /** Several nodes lie on top of each other: the user chooses one. */
  ask(nodes: readonly Node[]): void
  /** The user has moved the map, which followed a node. */
  letGo(): void
  /** The place was pressed long, or with the other button; null or absent: that means nothing. */
  mark?: ((mark: Mark) => void) | null
}

type Parts = {
  readonly dots: Dots
  readonly tip: Tip
  /** The time at which the track was at a point of the map's box; null: no track is there. */
  readonly spotAt: Trail['spotAt']
  /** Whether a press is for something else: it is the next place that is measured. */
  take(at: LatLng): boolean
}

/** Decides what pointing with a mouse shows, and what a press does. */
export function createPointing(map: LeafletMap, { dots, tip, spotAt, take }: Parts, choice: Choice): void {
  const box = map.getContainer()
  let isFinger = false
  box.addEventListener('pointerdown', ({ pointerType }) => (isFinger = pointerType !== 'mouse'), { capture: true })
  const silence = () => {
    box.classList.remove('is-over')
    tip.hide()
  }
  map.on('mousemove', ({ containerPoint }: LeafletMouseEvent) => {
    const hits = isFinger ? [] : dots.hits(containerPoint, REACH_PX.mouse)
    const [first] = hits
    const spot = first === undefined && !isFinger ? spotAt(containerPoint) : null
    box.classList.toggle('is-over', first !== undefined)
    const at = first?.at ?? spot?.at
    if (at === undefined) tip.hide()
    else tip.show(at, spot === null ? describe(hits) : dateTime(spot.time))
  })
  map.on('mouseout movestart zoomstart', silence)
  const { mark = null } = choice
  if (mark !== null) {
    map.on('contextmenu', ({ latlng, containerPoint: { x, y } }: LeafletMouseEvent) => {
      mark({ at: latlng.wrap(), x, y })
    })
    const learn = () => void import('./hold.ts').then(({ hold }) => hold(box)).catch(() => {})
    box.addEventListener('touchstart', learn, { once: true })
  }
  map.on('click', ({ containerPoint, latlng, originalEvent: { target } }: LeafletMouseEvent) => {
    const hits = dots.hits(containerPoint, isFinger ? REACH_PX.finger : REACH_PX.mouse)
    const nodes = hits.flatMap((unit) => unit.nodes)
    const [first] = nodes
    silence()
    if (take(hits[0]?.at ?? latlng)) return
    const isPin = target instanceof Element && target.closest('.waypoint') !== null
    const spot = first === undefined ? spotAt(containerPoint) : null
    if (spot !== null) tip.show(spot.at, dateTime(spot.time))
    else if (first === undefined) {
      if (!isPin) choice.choose(null)
    } else if (nodes.length === 1) choice.choose(first.nodeId)
    else if (!zoomInto(map, hits)) choice.ask(nodes)
  })
}

/** Zooms until the nodes of a cluster lie apart; false if it is no cluster, or if they never do. */
function zoomInto(map: LeafletMap, hits: readonly Unit[]): boolean {
  const clusters = hits.filter(({ nodes }) => nodes.length > 1)
  if (clusters.length === 0) return false
  const bounds = clusters.reduce((all, unit) => all.extend(boundsOf(unit)), latLngBounds([]))
  const zoom = Math.min(CLUSTERS_END_ZOOM, map.getBoundsZoom(bounds.pad(0.2)))
  if (zoom <= map.getZoom()) return false
  map.setView(bounds.getCenter(), zoom)
  return true
}

function describe(hits: readonly Unit[]): string {
  const nodes = hits.flatMap((unit) => unit.nodes)
  const [first] = nodes
  if (first === undefined) return ''
  if (nodes.length > 1) return t.map.several(nodes.length)
  return [nodeName(first), first.lastHeard === null ? '' : age(first.lastHeard, Date.now())].filter(Boolean).join(' · ')
}
