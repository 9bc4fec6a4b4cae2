import { radioHorizon } from '../../../../shared/mesh/radio-horizon.ts'
import { createSheet } from '../../../parts/map/sheet.ts'
import { latLng, latLngBounds } from 'leaflet'
import { circleAround } from '../layers/legs.ts'
import type { MapParts } from '../view.ts'

export type Circle = {
  /** `height` in metres above ground; null: no circle. */
  show(wanted: { readonly latitude: number; readonly longitude: number; readonly height: number } | null): void
  stop(): void
}

/** How far an antenna sees the ground of a smooth earth, around its node. */
export function createCircle({ map, palette, onRecolour }: MapParts): Circle {
  let edge: readonly { readonly lat: number; readonly lng: number }[] = []
  let last: number | null = null
  const sheet = createSheet(map, { pane: 'horizon', zIndex: 388 }, ({ pen, x, y }) => {
    if (edge.length === 0) return
    const colour = palette()('--accent')
    pen.beginPath()
    for (const at of edge) {
      const place = map.project(latLng(at.lat, at.lng), 0)
      pen.lineTo(x(place), y(place))
    }
    pen.closePath()
    pen.fillStyle = pen.strokeStyle = colour
    pen.globalAlpha = 0.06
    pen.fill()
    pen.globalAlpha = 1
    pen.lineWidth = 2
    pen.setLineDash([8, 5])
    pen.stroke()
    pen.setLineDash([])
  })
  const stop = onRecolour(sheet.redraw)
  return {
    show(wanted) {
      edge =
        wanted === null
          ? []
          : circleAround({ lat: wanted.latitude, lng: wanted.longitude }, radioHorizon(wanted.height))
      sheet.redraw()
      // A node that moves takes it along; the map is moved only for another one.
      if (wanted !== null && wanted.height !== last) {
        const bounds = latLngBounds(edge.map(({ lat, lng }) => latLng(lat, lng)))
        if (!map.getBounds().contains(bounds)) map.fitBounds(bounds, { padding: [24, 24], animate: false })
      }
      last = wanted?.height ?? null
    },
    stop,
  }
}
