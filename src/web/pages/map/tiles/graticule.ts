import { canvas, divIcon, layerGroup, type Map as LeafletMap, marker, polyline } from 'leaflet'
import { colour } from '../layers/colour.ts'

const STEPS = [45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
/** A label and some air between two lines, in pixels. */
const LABEL_WIDTH = 96
const LABEL_HEIGHT = 56

/** Degrees as lines with their names: the map that needs no other host. */
export function graticule(map: LeafletMap): { draw(): void } {
  // Below the tiles: visible where they are missing.
  map.createPane('graticule').style.zIndex = '150'
  const renderer = canvas({ pane: 'graticule', padding: 0.3 })
  const lines = layerGroup().addTo(map)
  const draw = () => {
    lines.clearLayers()
    const bounds = map.getBounds().pad(0.3)
    const size = map.getSize()
    const inSight = map.getBounds()
    const widest = ((inSight.getEast() - inSight.getWest()) / Math.max(1, size.x)) * LABEL_WIDTH
    const highest = ((inSight.getNorth() - inSight.getSouth()) / Math.max(1, size.y)) * LABEL_HEIGHT
    const step = STEPS.findLast((degrees) => degrees >= Math.max(widest, highest)) ?? 45
    const style = { color: colour('--line'), weight: 1, interactive: false, renderer }
    const west = inSight.getWest()
    const south = inSight.getSouth()
    for (const lat of ticks(Math.max(-85, bounds.getSouth()), Math.min(85, bounds.getNorth()), step)) {
      polyline(
        [
          [lat, bounds.getWest()],
          [lat, bounds.getEast()],
        ],
        style,
      ).addTo(lines)
      label(lat, west, degrees(lat, step, 'N', 'S'), 'label-lat').addTo(lines)
    }
    for (const lng of ticks(bounds.getWest(), bounds.getEast(), step)) {
      polyline(
        [
          [Math.max(-85, bounds.getSouth()), lng],
          [Math.min(85, bounds.getNorth()), lng],
        ],
        style,
      ).addTo(lines)
      label(south, lng, degrees(lng, step, 'E', 'W'), 'label-lng').addTo(lines)
    }
  }
  map.on('moveend zoomend resize', draw)
  draw()
  return { draw }
}

function ticks(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step)
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step)
}

function label(lat: number, lng: number, text: string, className: string) {
  const name = document.createElement('span')
  name.textContent = text
  return marker([lat, lng], {
    icon: divIcon({ className: `graticule-label ${className}`, html: name, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'graticule',
  })
}

function degrees(value: number, step: number, positive: string, negative: string): string {
  const digits = step >= 1 ? 0 : Math.min(3, Math.ceil(-Math.log10(step)))
  return `${Math.abs(value).toFixed(digits)}° ${value < 0 ? negative : positive}`
}
