import { divIcon, latLng, type LatLngBounds, layerGroup, type Map as LeafletMap, marker } from 'leaflet'
import type { Palette } from '../colour.ts'
import { enlargement } from '../occupied.ts'
import { createSheet, type Frame, type Place } from '../sheet.ts'

const STEPS = [45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
/** A label and some air between two lines, in pixels. */
const LABEL_WIDTH = 96
const LABEL_HEIGHT = 56

/** Lines of latitude and longitude with labels: the map that needs no other host. */
export function graticule(map: LeafletMap, palette: () => Palette): { draw(): void } {
  // Below the tiles: visible where they are missing.
  const { redraw } = createSheet(map, { pane: 'graticule', zIndex: 150 }, (frame) => drawLines(map, frame, palette()))
  const labels = layerGroup().addTo(map)
  const write = () => {
    labels.clearLayers()
    const step = stepOf(map)
    const bounds = map.getBounds().pad(0.3)
    const [west, south] = [map.getBounds().getWest(), map.getBounds().getSouth()]
    for (const lat of ticks(...latitudes(bounds), step)) {
      label(lat, west, degrees(lat, step, 'N', 'S'), 'label-lat').addTo(labels)
    }
    for (const lng of ticks(bounds.getWest(), bounds.getEast(), step)) {
      label(south, lng, degrees(wrapLongitude(lng), step, 'E', 'W'), 'label-lng').addTo(labels)
    }
  }
  map.on('moveend resize', write)
  write()
  return { draw: redraw }
}

function drawLines(map: LeafletMap, frame: Frame, colours: Palette): void {
  const { pen } = frame
  const bounds = map.getBounds().pad(0.3)
  const [from, to] = latitudes(bounds)
  const step = stepOf(map)
  const at = (lat: number, lng: number): Place => map.project(latLng(lat, lng), 0)
  const line = (a: Place, b: Place) => {
    pen.moveTo(frame.x(a), frame.y(a))
    pen.lineTo(frame.x(b), frame.y(b))
  }
  pen.strokeStyle = colours('--line')
  pen.lineWidth = 1
  pen.beginPath()
  for (const lat of ticks(from, to, step)) line(at(lat, bounds.getWest()), at(lat, bounds.getEast()))
  for (const lng of ticks(bounds.getWest(), bounds.getEast(), step)) line(at(from, lng), at(to, lng))
  pen.stroke()
}

/** Degrees between two lines. */
function stepOf(map: LeafletMap): number {
  const { x, y } = map.getSize()
  const inSight = map.getBounds()
  const widest = ((inSight.getEast() - inSight.getWest()) / Math.max(1, x)) * LABEL_WIDTH * enlargement()
  const highest = ((inSight.getNorth() - inSight.getSouth()) / Math.max(1, y)) * LABEL_HEIGHT * enlargement()
  return STEPS.findLast((degrees) => degrees >= Math.max(widest, highest)) ?? 45
}

/** From south to north, as far as Web Mercator reaches. */
function latitudes(bounds: LatLngBounds): [number, number] {
  return [Math.max(-85, bounds.getSouth()), Math.min(85, bounds.getNorth())]
}

/** Of a copy of the world beside the first one. */
function wrapLongitude(lng: number): number {
  return ((((lng + 180) % 360) + 360) % 360) - 180
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
