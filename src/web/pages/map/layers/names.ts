import { divIcon, layerGroup, type LatLng, type Map as LeafletMap, marker, type Marker, type Point } from 'leaflet'
import { type Node, nodeName, shortNameOf } from '../../../state/mesh/nodes.ts'
import { type Box, type Occupied, enlargement, remPx, textWidth } from '../../../parts/map/occupied.ts'

/** A node and where its dot is. */
export type Named = { readonly node: Node; readonly at: LatLng; readonly isDimmed: boolean }

export type Names = {
  /** The full name of the chosen node, above everything else. */
  showChosen(chosen: Named | null, occupied: Occupied): void
  /** The short names that fit, the most important first. */
  showShort(named: readonly Named[], occupied: Occupied): void
}

const SIDES = ['right', 'left', 'above', 'below'] as const
type Side = (typeof SIDES)[number]

/** Their sizes in rem, as in the styles. */
const SHORT_REM = 0.75
const CHOSEN_REM = 0.875
/** The maximum width of a name in `.map-name.chosen`. */
const MAX_CHOSEN_REM = 16
/** The distance from the middle of a dot to its name. */
const AWAY_PX = 11
const CHOSEN_AWAY_PX = 15

/** Names beside the dots, or none if there is no room on any side. Zooming in shows more. */
export function createNames(map: LeafletMap): Names {
  map.createPane('names').style.zIndex = '620'
  const layer = layerGroup().addTo(map)
  let drawn = new Map<string, Marker>()
  let chosenKey: string | null = null
  // Names that have not moved are not redrawn, because nodes are heard every second.
  const keep = (next: Map<string, () => Marker>) => {
    for (const [key, old] of drawn) if (!next.has(key)) layer.removeLayer(old)
    drawn = new Map([...next].map(([key, make]) => [key, drawn.get(key) ?? make().addTo(layer)]))
  }
  let chosenMarker: Marker | null = null
  return {
    showChosen(chosen, occupied) {
      const text = chosen === null ? '' : nodeName(chosen.node)
      if (chosen !== null) occupied.take(chosenBox(map.latLngToContainerPoint(chosen.at), text))
      const key = chosen === null ? null : `${text} ${chosen.at.lat} ${chosen.at.lng}`
      if (key === chosenKey) return
      chosenKey = key
      chosenMarker?.remove()
      chosenMarker = chosen === null ? null : nameMarker(chosen.at, text, 'map-name chosen').addTo(map)
    },
    showShort(named, occupied) {
      const next = new Map<string, () => Marker>()
      for (const { node, at, isDimmed } of named) {
        const text = shortNameOf(node)
        const point = map.latLngToContainerPoint(at)
        const side = SIDES.find((side) => occupied.isFree(shortBox(point, text, side)))
        if (side === undefined) continue
        occupied.take(shortBox(point, text, side))
        const className = `map-name ${side}${isDimmed ? ' dimmed' : ''}`
        const key = `${node.nodeNum} ${text} ${className} ${at.lat} ${at.lng}`
        next.set(key, () => nameMarker(at, text, className))
      }
      keep(next)
    },
  }
}

function shortBox({ x, y }: Point, text: string, side: Side): Box {
  const height = remPx(SHORT_REM)
  const width = textWidth(text, '--mono', height)
  const away = AWAY_PX * enlargement()
  const box = { width, height }
  if (side === 'right') return { ...box, x: x + away, y: y - height / 2 }
  if (side === 'left') return { ...box, x: x - away - width, y: y - height / 2 }
  return { ...box, x: x - width / 2, y: side === 'above' ? y - away - height : y + away }
}

function chosenBox({ x, y }: Point, text: string): Box {
  const width = Math.min(remPx(MAX_CHOSEN_REM), textWidth(text, '--font', remPx(CHOSEN_REM)) + remPx(1.125))
  const height = remPx(1.6875)
  return { x: x - width / 2, y: y - CHOSEN_AWAY_PX - height, width, height }
}

function nameMarker(at: LatLng, text: string, className: string): Marker {
  // An element instead of text, because Leaflet would read markup in a node's name.
  const name = document.createElement('bdi')
  name.textContent = text
  return marker(at, {
    icon: divIcon({ className, html: name, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'names',
  })
}
