import { latLng, type LatLng, type Map as LeafletMap, type Point } from 'leaflet'
import type { Palette } from '../../../parts/map/colour.ts'
import { createSheet, type Frame } from '../../../parts/map/sheet.ts'
import { COVERAGE_BITS } from '../../../../shared/mesh/coverage.ts'
import { type Cell, type CellScale, edgesOf } from './cells.ts'

/** What is asked for. */
export type Asked = { readonly bounds: string; readonly bits: number }

export type CoverageLayer = {
  /** `onMove` is called at once, and after each move; `onPick` gets the smallest cell at the pressed place, or null. */
  start(onMove: (asked: Asked) => void, onPick: (cell: Cell | null) => void): void
  show(cells: readonly Cell[], scale: CellScale, picked: Cell | null, now: number): void
  /** The smallest cell in the middle of the map. */
  middle(): Cell | null
  stop(): void
}

/** At this zoom, a cell of so many bits more is about 20 pixels wide. */
const BITS_ABOVE_ZOOM = 4
/** A cell as wide as this has its number in it: not everybody sees colours. */
const NUMBERED_PX = 34
/** Of the visible part on each side, so that small moves show no border. */
const PAD = 0.2
const FILL = 0.5

const made = new WeakMap<LeafletMap, CoverageLayer>()

type Drawn = { readonly cell: Cell; readonly topLeft: Point; readonly bottomRight: Point }

/** One for each map: its sheet stays, and is empty when nothing is shown. */
export function coverageOn(map: LeafletMap, palette: () => Palette): CoverageLayer {
  const known = made.get(map)
  if (known !== undefined) return known
  let drawn: readonly Drawn[] = []
  let shown: { scale: CellScale; picked: Cell | null; now: number } | null = null
  let tell: (() => void) | null = null
  let press: ((event: { latlng: LatLng }) => void) | null = null
  const sheet = createSheet(map, { pane: 'coverage', zIndex: 380 }, (frame) => {
    if (shown !== null) drawCells(frame, drawn, shown, palette())
  })
  const cellAt = (place: LatLng) => {
    const { lat, lng } = place.wrap()
    // The larger ones come first.
    const found = drawn.findLast(({ cell }) => {
      const { west, south, east, north } = edgesOf(cell)
      return west <= lng && lng < east && south <= lat && lat < north
    })
    return found?.cell ?? null
  }
  const layer: CoverageLayer = {
    start(onMove, onPick) {
      layer.stop()
      tell = () => onMove(askedBy(map))
      press = ({ latlng }) => onPick(cellAt(latlng))
      map.on('moveend', tell)
      map.on('click', press)
      tell()
    },
    show(cells, scale, picked, now) {
      drawn = cells
        .toSorted((a, b) => a.properties.bits - b.properties.bits)
        .map((cell) => {
          const { west, south, east, north } = edgesOf(cell)
          return { cell, topLeft: map.project([north, west], 0), bottomRight: map.project([south, east], 0) }
        })
      shown = { scale, picked, now }
      sheet.redraw()
    },
    middle: () => cellAt(map.getCenter()),
    stop() {
      if (tell !== null) map.off('moveend', tell)
      if (press !== null) map.off('click', press)
      tell = null
      press = null
      shown = null
      sheet.redraw()
    },
  }
  made.set(map, layer)
  return layer
}

function askedBy(map: LeafletMap): Asked {
  const around = map.getBounds().pad(PAD)
  const isWorld = around.getEast() - around.getWest() >= 360
  const wrap = (lng: number) => latLng(0, lng).wrap().lng
  const [west, east] = isWorld ? [-180, 180] : [wrap(around.getWest()), wrap(around.getEast())]
  const [south, north] = [Math.max(-90, around.getSouth()), Math.min(90, around.getNorth())]
  const bits = Math.round(map.getZoom()) + BITS_ABOVE_ZOOM
  return {
    bounds: [west, south, east, north].map((degrees) => degrees.toFixed(4)).join(),
    bits: Math.max(COVERAGE_BITS.min, Math.min(COVERAGE_BITS.max, bits)),
  }
}

function drawCells(
  { pen, x, y, touches }: Frame,
  drawn: readonly Drawn[],
  { scale, picked, now }: { scale: CellScale; picked: Cell | null; now: number },
  colours: Palette,
): void {
  pen.textAlign = 'center'
  pen.textBaseline = 'middle'
  pen.font = '600 11px system-ui, sans-serif'
  pen.lineJoin = 'round'
  for (const { cell, topLeft, bottomRight } of drawn) {
    const [left, top, right, bottom] = [x(topLeft), y(topLeft), x(bottomRight), y(bottomRight)]
    if (!touches(left, top, right, bottom, 2)) continue
    const value = scale.valueOf(cell, now)
    const place = value === null ? scale.tokens.length - 1 : scale.classOf(value)
    const token = scale.tokens[place]
    if (token === undefined) continue
    const [width, height] = [right - left, bottom - top]
    pen.fillStyle = colours(token)
    pen.strokeStyle = colours(token)
    if (value !== null) {
      pen.globalAlpha = FILL
      pen.fillRect(left, top, width, height)
      pen.globalAlpha = 1
    }
    pen.lineWidth = 1
    pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1)
    if (cell === picked) {
      pen.strokeStyle = colours('--text')
      pen.lineWidth = 3
      pen.strokeRect(left + 1.5, top + 1.5, width - 3, height - 3)
    }
    if (value !== null && width >= NUMBERED_PX) {
      const text = scale.textOf(value)
      pen.lineWidth = 3
      pen.strokeStyle = colours('--surface')
      pen.fillStyle = colours('--text')
      pen.strokeText(text, left + width / 2, top + height / 2)
      pen.fillText(text, left + width / 2, top + height / 2)
    }
  }
}
