import type { Map as LeafletMap } from 'leaflet'
import type { Node } from '../../../state/mesh/nodes.ts'
import { createOccupied, type Occupied } from '../../../parts/map/occupied.ts'
import { ageOf } from '../filter.ts'
import type { Lines } from './lines.ts'
import { createNames, type Named } from './names.ts'
import { type Dots, RELAYS } from './nodes.ts'
import type { Waypoints } from './waypoints.ts'

/** If more nodes are visible, only marked nodes are named. */
const MAX_NAMED = 300

type Parts = {
  readonly dots: Dots
  readonly lines: Lines
  readonly waypoints: Waypoints
  /** Writes the times of the track where there is room. */
  readonly placeTimes: (occupied: Occupied) => void
  /** Writes the names of towns where there is room. */
  readonly placeTowns: (occupied: Occupied) => void
  /** Which nodes have a short name: all; all, with emphasis on these; none. */
  readonly named: () => 'all' | ReadonlySet<number> | 'none'
}

/** Keeps the texts of the map apart. More important ones are placed first. */
export function createArrangement(map: LeafletMap, parts: Parts): () => void {
  const names = createNames(map)
  return () => {
    const occupied = createOccupied()
    const units = parts.dots.inSight()
    for (const { at, radius } of units) {
      const { x, y } = map.latLngToContainerPoint(at)
      occupied.take({ x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius })
    }
    const chosen = units.find(({ isChosen }) => isChosen)
    names.showChosen(chosen === undefined ? null : { node: chosen.nodes[0], at: chosen.at, isDimmed: false }, occupied)
    parts.waypoints.takeRoom(occupied)
    parts.placeTimes(occupied)
    parts.lines.placeSignals(occupied)
    const named = parts.named()
    const alone = units.filter(({ nodes, isChosen }) => named !== 'none' && nodes.length === 1 && !isChosen)
    const shown = alone.map(({ nodes: [node], at }): Named => {
      return { node, at, isDimmed: typeof named === 'object' && !named.has(node.nodeNum) }
    })
    names.showShort(toName(shown, Date.now()), occupied)
    parts.placeTowns(occupied)
  }
}

/** The nodes whose short names are shown, the most important first. */
function toName(dots: readonly Named[], now: number): readonly Named[] {
  const isFew = dots.length <= MAX_NAMED
  const last = ({ isDimmed }: Named) => Number(isDimmed)
  return dots
    .filter(({ node }) => node.shortName !== null && (isFew || isMarked(node)))
    .toSorted((a, b) => last(a) - last(b) || rank(a.node, now) - rank(b.node, now) || a.node.nodeNum - b.node.nodeNum)
}

function isMarked({ isLocal, isFavorite }: Node): boolean {
  return isLocal || isFavorite
}

/** Marked nodes, then those that relay for others, then those active now. */
function rank(node: Node, now: number): number {
  return isMarked(node) ? 0 : 1 + ageOf(node, now) + (RELAYS.has(node.role ?? '') ? 0 : 3)
}
