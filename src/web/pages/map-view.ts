import {
  canvas,
  circle,
  circleMarker,
  type CircleMarker,
  latLngBounds,
  layerGroup,
  type Map as LeafletMap,
  map as createLeaflet,
  polyline,
  control,
} from 'leaflet'
import 'leaflet/dist/leaflet.css'
import { activeMs, type Node, nodeName, precisionMeters } from '../mesh.ts'
import { colour } from './colour.ts'
import { graticule } from './graticule.ts'

export type Link = { readonly nodeNum: number; readonly neighborNum: number; readonly snr: number }

export type MeshMap = {
  showNodes(placed: readonly Node[], now: number, chosen: number | null): void
  /** Where one node was, oldest first. */
  showTrack(positions: readonly { readonly latitude: number; readonly longitude: number }[]): void
  /** Who hears whom, as lines between the nodes that `showNodes` was given. */
  showLinks(links: readonly Link[]): void
  /** Shows all nodes at once. */
  fit(): void
  destroy(): void
}

const DAY_MS = 86_400_000
/** More names than these would hide the nodes. */
const MOST_LABELS = 60

/** Leaflet on one canvas: hundreds of nodes cost no elements. Choosing nothing answers null. */
export function createMap(box: HTMLElement, onChoose: (nodeId: string | null) => void): MeshMap {
  const renderer = canvas({ padding: 0.3, tolerance: 6 })
  const map = createLeaflet(box, {
    renderer,
    attributionControl: false,
    zoomControl: false,
    zoomSnap: 0.5,
    worldCopyJump: true,
  })
  map.setView([30, 10], 2)
  control.zoom({ position: 'bottomright' }).addTo(map)
  control.scale({ imperial: false, position: 'bottomright' }).addTo(map)
  const grid = graticule(map)
  const cells = layerGroup().addTo(map)
  const lines = layerGroup().addTo(map)
  const track = layerGroup().addTo(map)
  const dots = layerGroup().addTo(map)
  const markers = new Map<number, CircleMarker>()
  let hasFitted = false
  let shown: readonly Node[] = []
  map.on('click', () => onChoose(null))
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => grid.draw()
  scheme.addEventListener('change', recolour)
  const fit = () => {
    const places = shown.flatMap(({ position }) => (position === null ? [] : [toLatLng(position)]))
    if (places.length > 0) map.fitBounds(latLngBounds(places), { padding: [36, 36], maxZoom: 15, animate: false })
  }
  return {
    showNodes(placed, now, chosen) {
      shown = placed
      cells.clearLayers()
      dots.clearLayers()
      markers.clear()
      for (const node of placed) {
        const isChosen = node.nodeNum === chosen
        drawNode(node, now, isChosen, placed.length <= MOST_LABELS, { cells, dots, markers, onChoose })
      }
      if (!hasFitted && placed.length > 0) {
        fit()
        hasFitted = true
      }
      const chosenMarker = chosen === null ? undefined : markers.get(chosen)
      if (chosenMarker !== undefined) reveal(map, chosenMarker)
    },
    showTrack(positions) {
      track.clearLayers()
      if (positions.length < 2) return
      polyline(positions.map(toLatLng), { color: colour('--accent'), weight: 3, opacity: 0.8 }).addTo(track)
    },
    showLinks(links) {
      lines.clearLayers()
      for (const { nodeNum, neighborNum, snr } of links) {
        const ends = [markers.get(nodeNum), markers.get(neighborNum)].flatMap((end) => end?.getLatLng() ?? [])
        if (ends.length < 2) continue
        // The better the signal, the stronger the line.
        const opacity = Math.min(0.7, Math.max(0.2, (snr + 20) / 40))
        polyline(ends, { color: colour('--line-strong'), weight: 1.5, opacity, interactive: false })
          .addTo(lines)
          .bringToBack()
      }
    },
    fit,
    destroy() {
      scheme.removeEventListener('change', recolour)
      map.remove()
    },
  }
}

function reveal(map: LeafletMap, marker: CircleMarker): void {
  marker.openTooltip()
  if (!map.getBounds().pad(-0.1).contains(marker.getLatLng())) map.panTo(marker.getLatLng())
}

type Layers = {
  readonly cells: ReturnType<typeof layerGroup>
  readonly dots: ReturnType<typeof layerGroup>
  readonly markers: Map<number, CircleMarker>
  readonly onChoose: (nodeId: string | null) => void
}

function drawNode(node: Node, now: number, isChosen: boolean, hasLabel: boolean, layers: Layers): void {
  const { cells, dots, markers, onChoose } = layers
  if (node.position === null) return
  const at = toLatLng(node.position)
  const fill = colour(ageColour(node, now))
  const meters = precisionMeters(node.position.precisionBits)
  if (meters !== null) {
    circle(at, { radius: meters, color: fill, weight: 1, opacity: 0.5, fillOpacity: 0.07, interactive: false }).addTo(
      cells,
    )
  }
  const marker = circleMarker(at, {
    radius: isChosen ? 10 : 7,
    color: isChosen ? colour('--text') : colour('--surface'),
    weight: isChosen ? 3 : 2,
    fillColor: fill,
    fillOpacity: 1,
    bubblingMouseEvents: false,
  })
  const isShort = hasLabel && !isChosen && node.shortName !== null
  marker.bindTooltip(tooltip(isShort ? (node.shortName ?? '') : nodeName(node)), {
    direction: isShort ? 'right' : 'top',
    offset: isShort ? [6, 0] : [0, -8],
    permanent: isChosen || isShort,
    className: isShort ? 'map-label' : '',
  })
  marker.on('click', () => onChoose(node.nodeId))
  marker.addTo(dots)
  markers.set(node.nodeNum, marker)
}

// An element, not a text: Leaflet would read markup out of a node's name.
function tooltip(text: string): HTMLElement {
  const element = document.createElement('span')
  element.textContent = text
  return element
}

function ageColour(node: Node, now: number): string {
  const ms = node.lastHeard === null ? Number.POSITIVE_INFINITY : now - node.lastHeard
  return ms < activeMs.peek() ? '--age-0' : ms < DAY_MS ? '--age-1' : '--age-2'
}

function toLatLng({ latitude, longitude }: { latitude: number; longitude: number }): [number, number] {
  return [latitude, longitude]
}
