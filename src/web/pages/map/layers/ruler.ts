import { type LatLng, latLng, type Map as LeafletMap } from 'leaflet'
import type { Palette } from '../../../parts/map/colour.ts'
import { createSheet, type Frame } from '../../../parts/map/sheet.ts'
import { type Leg, legsOf, wayOf } from './legs.ts'

export type Ruler = {
  /** Begins anew; `onChange` gets the number of places, and the parts between them. */
  start(onChange: (places: number, legs: readonly Leg[]) => void): void
  /** The next place; null: the middle of the map. False if nothing is measured now. */
  add(at: LatLng | null): boolean
  /** Without the last place. */
  undo(): void
  stop(): void
  redraw(): void
}

export function createRuler(map: LeafletMap, palette: () => Palette): Ruler {
  let places: readonly LatLng[] = []
  let report: ((places: number, legs: readonly Leg[]) => void) | null = null
  const sheet = createSheet(map, { pane: 'ruler', zIndex: 420 }, (frame) => drawRuler(frame, map, places, palette()))
  const change = (next: readonly LatLng[]) => {
    places = next
    sheet.redraw()
    report?.(places.length, legsOf(places))
  }
  return {
    start(onChange) {
      report = onChange
      change([])
    },
    add(at) {
      if (report === null) return false
      const { lat, lng } = at ?? map.getCenter()
      change([...places, latLng(lat, lng)])
      return true
    },
    undo: () => change(places.slice(0, -1)),
    stop() {
      report = null
      change([])
    },
    redraw: sheet.redraw,
  }
}

function drawRuler({ pen, x, y }: Frame, map: LeafletMap, places: readonly LatLng[], colours: Palette): void {
  const { line, stops } = wayOf(places, map.getCenter().lng)
  const project = ({ lat, lng }: { lat: number; lng: number }) => map.project(latLng(lat, lng), 0)
  pen.lineJoin = 'round'
  pen.beginPath()
  for (const at of line) {
    const place = project(at)
    pen.lineTo(x(place), y(place))
  }
  for (const [token, width] of [
    ['--surface', 6],
    ['--text', 2],
  ] as const) {
    pen.strokeStyle = colours(token)
    pen.lineWidth = width
    pen.stroke()
  }
  pen.fillStyle = colours('--surface')
  for (const stop of stops) {
    const place = project(stop)
    pen.beginPath()
    pen.arc(x(place), y(place), 5, 0, 2 * Math.PI)
    pen.fill()
    pen.stroke()
  }
}
