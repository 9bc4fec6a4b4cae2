import { control, divIcon, latLngBounds, layerGroup, map as createLeaflet, marker, type LatLng } from 'leaflet'
import 'leaflet/dist/leaflet.css'
import { alertTexts } from '../../strings/alerts.ts'
import { isDark, readPalette } from '../../parts/map/colour.ts'
import { createSheet, type Frame, type Place } from '../../parts/map/sheet.ts'
import type { Tiles } from '../../parts/map/tiles/archive.ts'
import { startTiles } from '../../parts/map/tiles/start.ts'
import type { TileReports } from '../../parts/map/tiles/tiles.ts'
import type { Ground } from '../../parts/map/world/ground.ts'
import { createOccupied } from '../../parts/map/occupied.ts'
import type { Shape } from './rule.ts'

type Spot = readonly [latitude: number, longitude: number]

export type AreaDrawing = {
  show(shape: Shape, nodes: readonly Spot[]): void
  /** `hasWorld`: whether the built-in map lies under them. */
  showTiles(tiles: Tiles | null, hasWorld: boolean): void
  destroy(): void
}

const METRES_PER_DEGREE = 111_195
/** Five digits are about a metre. */
const rounded = ({ lat, lng }: LatLng): [number, number] => [Number(lat.toFixed(5)), Number(lng.toFixed(5))]

/** A map for drawing the area of a rule: a click adds a corner, or moves the centre of a circle. */
export function createAreaDrawing(box: HTMLElement, onDraw: (shape: Shape) => void, reports: TileReports): AreaDrawing {
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
  const map = createLeaflet(box, {
    zoomAnimation: !isStill,
    attributionControl: false,
    zoomControl: false,
    // Not that of its tiles.
    minZoom: 0,
    maxZoom: 20,
  })
  map.setView([30, 10], 1)
  control.zoom({ position: 'bottomright' }).addTo(map)
  const colours = readPalette()
  let shape: Shape | null = null
  let nodes: readonly Spot[] = []
  let isPlaced = false
  let dropTiles = () => {}
  let isGone = false
  let ground: Ground | null = null
  let isWorld = false
  let above: Tiles | null = null
  const layGround = async () => {
    const { createGround } = await import('../../parts/map/world/ground.ts')
    if (isGone) return
    const placeNames = () => ground?.placeNames(createOccupied())
    ground = createGround(map, () => colours, placeNames)
    ground.show(isWorld, above)
    map.on('moveend resize', placeNames)
  }
  layGround().catch(console.error)
  const at = (spot: Spot): Place => map.project([spot[0], spot[1]], 0)
  const sheet = createSheet(map, { pane: 'area', zIndex: 390 }, (frame) => {
    drawNodes(frame, nodes.map(at), colours('--age-0'))
    if (shape !== null) drawShape(frame, shape, at, colours('--accent'))
  })
  const corners = layerGroup().addTo(map)
  const pin = (spot: Spot, name: string) =>
    marker([spot[0], spot[1]], {
      draggable: true,
      autoPan: true,
      title: name,
      icon: divIcon({ className: 'area-corner', iconSize: [24, 24] }),
    }).addTo(corners)
  const pinAll = (shown: Shape) => {
    corners.clearLayers()
    if (shown.kind === 'circle') {
      pin([shown.latitude, shown.longitude], alertTexts.centre).on('dragend', ({ target }) =>
        moveTo(target.getLatLng()),
      )
      return
    }
    const { points } = shown
    for (const [index, point] of points.entries()) {
      pin(point, alertTexts.corner(index + 1))
        .on('dragend', ({ target }) => onDraw({ ...shown, points: points.with(index, rounded(target.getLatLng())) }))
        .on('click', () => onDraw({ ...shown, points: points.toSpliced(index, 1) }))
    }
  }
  const moveTo = (place: LatLng) => {
    const [latitude, longitude] = rounded(place)
    if (shape?.kind === 'circle') onDraw({ ...shape, latitude, longitude })
  }
  map.on('click', ({ latlng }) => {
    const place = latlng.wrap()
    if (shape?.kind === 'polygon') onDraw({ ...shape, points: [...shape.points, rounded(place)] })
    else moveTo(place)
  })
  const resized = new ResizeObserver(() => map.invalidateSize({ animate: false }))
  resized.observe(box)
  return {
    show(next, placed) {
      shape = next
      nodes = placed
      pinAll(next)
      const wanted =
        next.kind === 'polygon' && next.points.length > 0 ? next.points : isAtNowhere(next) ? placed : [centreOf(next)]
      if (!isPlaced && wanted.length > 0) {
        isPlaced = true
        map.fitBounds(latLngBounds(wanted.map(([lat, lng]): [number, number] => [lat, lng])), {
          padding: [32, 32],
          maxZoom: 13,
          animate: false,
        })
      }
      sheet.redraw()
    },
    showTiles(tiles, hasWorld) {
      dropTiles()
      dropTiles = tiles === null ? () => {} : startTiles(map, tiles, isDark(), reports)
      isWorld = hasWorld
      above = tiles
      ground?.show(isWorld, above)
    },
    destroy() {
      isGone = true
      resized.disconnect()
      dropTiles()
      map.remove()
    },
  }
}

/** Whether a circle has no centre yet, or a polygon no corners. */
function isAtNowhere(shape: Shape): boolean {
  return shape.kind === 'polygon' || (shape.latitude === 0 && shape.longitude === 0)
}

function centreOf(shape: Shape): Spot {
  return shape.kind === 'circle' ? [shape.latitude, shape.longitude] : (shape.points[0] ?? [0, 0])
}

function drawNodes({ pen, x, y }: Frame, places: readonly Place[], colour: string): void {
  pen.fillStyle = colour
  for (const place of places) {
    pen.beginPath()
    pen.arc(x(place), y(place), 4, 0, 2 * Math.PI)
    pen.fill()
  }
}

function drawShape({ pen, x, y }: Frame, shape: Shape, at: (spot: Spot) => Place, colour: string): void {
  pen.beginPath()
  if (shape.kind === 'circle') {
    const { latitude, longitude, metres } = shape
    const centre = at([latitude, longitude])
    const edge = at([Math.min(85, latitude + metres / METRES_PER_DEGREE), longitude])
    pen.arc(x(centre), y(centre), Math.abs(y(centre) - y(edge)), 0, 2 * Math.PI)
  } else {
    for (const [index, point] of shape.points.entries()) {
      const place = at(point)
      if (index === 0) pen.moveTo(x(place), y(place))
      else pen.lineTo(x(place), y(place))
    }
    pen.closePath()
  }
  pen.strokeStyle = colour
  pen.fillStyle = colour
  pen.lineWidth = 2
  pen.stroke()
  pen.globalAlpha = 0.15
  pen.fill()
  pen.globalAlpha = 1
}
