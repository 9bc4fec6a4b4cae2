import { control, latLngBounds, map as createLeaflet } from 'leaflet'
import 'leaflet/dist/leaflet.css'
import { readPalette } from '../../../parts/map/colour.ts'
import { createOccupied } from '../../../parts/map/occupied.ts'
import { createSheet } from '../../../parts/map/sheet.ts'
import { createGround, type Ground } from '../../../parts/map/world/ground.ts'
import type { Bounds } from './region.ts'

type Spot = { readonly latitude: number; readonly longitude: number }

export type RegionDrawing = {
  /** Draws the area and the nodes, and brings an area into sight that is not that in sight. */
  show(bounds: Bounds, nodes: readonly Spot[]): void
  /** The area in sight. */
  seen(): Bounds
  destroy(): void
}

const MAX_LATITUDE = 85

/** A small map of an area that may become a detailed one. */
export function createRegionDrawing(box: HTMLElement): RegionDrawing {
  const map = createLeaflet(box, {
    attributionControl: false,
    zoomControl: false,
    minZoom: 0,
    scrollWheelZoom: false,
    maxZoom: 14,
  })
  map.setView([30, 10], 1)
  control.zoom({ position: 'bottomright' }).addTo(map)
  const colours = readPalette()
  let area: Bounds | null = null
  let spots: readonly Spot[] = []
  const placeNames = () => ground.placeNames(createOccupied())
  const ground: Ground = createGround(
    map,
    () => colours,
    () => setTimeout(placeNames),
  )
  ground.show(true, null)
  map.on('moveend resize', placeNames)
  const sheet = createSheet(map, { pane: 'area', zIndex: 390 }, ({ pen, x, y }) => {
    const at = ({ latitude, longitude }: Spot) => map.project([latitude, longitude], 0)
    pen.fillStyle = colours('--age-0')
    for (const place of spots.map(at)) {
      pen.beginPath()
      pen.arc(x(place), y(place), 3, 0, 2 * Math.PI)
      pen.fill()
    }
    if (area === null) return
    const [west, south, east, north] = area
    const [from, to] = [at({ latitude: north, longitude: west }), at({ latitude: south, longitude: east })]
    pen.strokeStyle = colours('--accent')
    pen.lineWidth = 2
    pen.strokeRect(x(from), y(from), x(to) - x(from), y(to) - y(from))
  })
  const resized = new ResizeObserver(() => map.invalidateSize({ animate: false }))
  resized.observe(box)
  const seen = (): Bounds => {
    const bounds = map.getBounds()
    const round = (degrees: number, most: number) => Number(Math.max(-most, Math.min(most, degrees)).toFixed(4))
    return [
      round(bounds.getWest(), 180),
      round(bounds.getSouth(), MAX_LATITUDE),
      round(bounds.getEast(), 180),
      round(bounds.getNorth(), MAX_LATITUDE),
    ]
  }
  return {
    show(bounds, nodes) {
      const isSeen = JSON.stringify(bounds) === JSON.stringify(seen())
      const isNew = JSON.stringify(bounds) !== JSON.stringify(area)
      area = bounds
      spots = nodes
      const [west, south, east, north] = bounds
      if (isNew && !isSeen && west < east && south < north) {
        map.fitBounds(latLngBounds([south, west], [north, east]), { padding: [16, 16], animate: false })
      }
      sheet.redraw()
    },
    seen,
    destroy() {
      resized.disconnect()
      map.remove()
    },
  }
}
