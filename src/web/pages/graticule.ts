import { type Map as LeafletMap, layerGroup, marker, divIcon, polyline } from 'leaflet'
import { colour } from './colour.ts'

const STEPS = [45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
/** Lines across the map, at most. */
const LINES = 8

/** Degrees as lines with their names: the map that needs no other host. */
export function graticule(map: LeafletMap): { draw(): void } {
  const lines = layerGroup().addTo(map)
  const draw = () => {
    lines.clearLayers()
    const bounds = map.getBounds().pad(0.3)
    const span = Math.max(bounds.getEast() - bounds.getWest(), bounds.getNorth() - bounds.getSouth())
    const step = STEPS.findLast((degrees) => span / degrees <= LINES * 2) ?? 45
    const style = { color: colour('--line'), weight: 1, interactive: false }
    const west = map.getBounds().getWest()
    const south = map.getBounds().getSouth()
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
  })
}

function degrees(value: number, step: number, positive: string, negative: string): string {
  const digits = step >= 1 ? 0 : Math.min(3, Math.ceil(-Math.log10(step)))
  return `${Math.abs(value).toFixed(digits)}° ${value < 0 ? negative : positive}`
}
