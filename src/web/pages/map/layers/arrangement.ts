import type { Map as LeafletMap } from 'leaflet'
import type { Node } from '../../../state/mesh.ts'
import { createCrowd } from './crowd.ts'
import { ageOf } from '../filter.ts'
import type { Lines } from './lines.ts'
import { createNames } from '../names.ts'
import { type Dot, type Dots, RELAYS } from './nodes.ts'
import type { Waypoints } from './waypoints.ts'

/** If more nodes are visible, only those that somebody marked are named. */
const MOST_NAMED = 300

/** Keeps the texts of the map apart: more important ones take their room first. */
export function createArrangement(map: LeafletMap, parts: { dots: Dots; lines: Lines; waypoints: Waypoints }) {
  const names = createNames(map)
  let frame = 0
  const arrange = () => {
    const crowd = createCrowd()
    const dots = parts.dots.inSight()
    for (const { at, radius } of dots) {
      const { x, y } = map.latLngToContainerPoint(at)
      crowd.take({ x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius })
    }
    names.showChosen(dots.find(({ isChosen }) => isChosen) ?? null, crowd)
    parts.waypoints.takeRoom(crowd)
    parts.lines.placeSignals(crowd)
    names.showShort(toName(dots, Date.now()), crowd)
  }
  return {
    /** Once for all that changes at a time. */
    arrange() {
      cancelAnimationFrame(frame)
      frame = requestAnimationFrame(arrange)
    },
    stop: () => cancelAnimationFrame(frame),
  }
}

/** Whose short name is written, the first ones first. */
function toName(dots: readonly Dot[], now: number): readonly Dot[] {
  const isFew = dots.length <= MOST_NAMED
  return dots
    .filter(({ node, isChosen }) => !isChosen && node.shortName !== null && (isFew || isMarked(node)))
    .toSorted((a, b) => rank(a.node, now) - rank(b.node, now) || a.node.nodeNum - b.node.nodeNum)
}

function isMarked({ isLocal, isFavorite }: Node): boolean {
  return isLocal || isFavorite
}

/** Nodes that somebody marked, then those that relay for others, then those active now. */
function rank(node: Node, now: number): number {
  return isMarked(node) ? 0 : 1 + ageOf(node, now) + (RELAYS.has(node.role ?? '') ? 0 : 3)
}
