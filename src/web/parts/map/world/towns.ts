import type { Map as LeafletMap } from 'leaflet'
import { language } from '../../../language.ts'
import type { Palette } from '../colour.ts'
import { type Box, enlargement, type Occupied, remPx, textWidth } from '../occupied.ts'
import { createSheet, type Frame, type Place } from '../sheet.ts'
import type { Tiles } from '../tiles/archive.ts'
import { type Cover, coverOf } from '../tiles/cover.ts'
import { levelsAt, type Pieces } from './pieces.ts'
import { cellsInSight, unitsOf } from './shapes.ts'

/** A name where there is room for it. `dx`, `dy`: from the place to the text in pixels, to its middle or where it is aligned. */
type Label = {
  readonly at: Place
  readonly text: string
  readonly size: number
  readonly dx: number
  readonly dy: number
  readonly align: 'left' | 'right' | 'center'
  readonly kind: 'town' | 'capital' | 'country'
  /** A town has none where something else is. */
  readonly hasDot: boolean
}

const SMALL_REM = 0.6875
const LARGE_REM = 0.8125
/** A town that was already named so many levels before has large letters. */
const LARGE_AFTER = 3
/** From the middle of a town's dot to its name. */
const AWAY_PX = 6
/** From this zoom level on, nobody wonders which country it is. */
const NO_COUNTRIES = 8
const MAX_NAMES = 120

/** Names of towns and countries where nothing else is written. */
export function createTowns(map: LeafletMap, pieces: Pieces, palette: () => Palette) {
  let labels: readonly Label[] = []
  let drawn = ''
  const sheet = createSheet(map, { pane: 'towns', zIndex: 380 }, (frame) => drawLabels(frame, labels, palette()))
  return {
    /** After everything that is more important, and not over tiles, which have names of their own. */
    place(occupied: Occupied | null, tiles: Tiles | null): void {
      labels = occupied === null ? [] : findRoom(map, pieces, occupied, coverOf(tiles, map.getZoom()))
      const now = `${map.getZoom()} ${JSON.stringify(labels)}`
      if (now === drawn) return
      drawn = now
      sheet.redraw()
    },
    redraw: sheet.redraw,
  }
}

function findRoom(map: LeafletMap, pieces: Pieces, occupied: Occupied, cover: Cover | null): readonly Label[] {
  const zoom = map.getZoom()
  const scale = map.getZoomScale(zoom, 0)
  const origin = map.getPixelOrigin()
  const corner = map.containerPointToLayerPoint([0, 0])
  const { x: width, y: height } = map.getSize()
  const labels: Label[] = []
  const onMap = ({ x, y }: Place) => [x * scale - origin.x - corner.x, y * scale - origin.y - corner.y] as const
  if (cover !== null) {
    const [left, top] = onMap({ x: cover.left, y: cover.top })
    const [right, bottom] = onMap({ x: cover.right, y: cover.bottom })
    const [x, y] = [Math.max(0, left), Math.max(0, top)]
    occupied.take({ x, y, width: Math.min(width, right) - x, height: Math.min(height, bottom) - y })
  }
  const put = (at: Place, text: string, size: number, kind: Label['kind']) => {
    const [x, y] = onMap(at)
    if (x < 0 || y < 0 || x > width || y > height || labels.length >= MAX_NAMES) return
    if (cover !== null && isCovered(at, cover)) return
    const wide = textWidth(text, '--font', size)
    const away = AWAY_PX * enlargement()
    const sides = kind === 'country' ? [OVER] : sidesOf(away, size)
    const boxAt = ({ dx, dy, align }: Side): Box => {
      const left = dx - (align === 'left' ? 0 : align === 'right' ? wide : wide / 2)
      return { x: x + left - 2, y: y + dy - size / 2 - 2, width: wide + 4, height: size + 4 }
    }
    const side = sides.find((each) => occupied.isFree(boxAt(each)))
    if (side === undefined) return
    const dot = { x: x - away / 2, y: y - away / 2, width: away, height: away }
    const hasDot = kind !== 'country' && occupied.isFree(dot)
    if (hasDot) occupied.take(dot)
    occupied.take(boxAt(side))
    labels.push({ at, text, size, ...side, kind, hasDot })
  }
  const [shapes = 0, ...more] = levelsAt(zoom)
  const cells = [shapes, ...more].flatMap((z) => cellsInSight(map, pieces, z, 0))
  const towns = cells.flatMap((cell) => {
    const { left, top, unit } = unitsOf(cell)
    return cell.piece.towns
      .filter(({ from }) => from <= zoom)
      .map((town) => ({ ...town, at: { x: left + town.x * unit, y: top + town.y * unit } }))
  })
  if (zoom < NO_COUNTRIES) {
    for (const cell of cellsInSight(map, pieces, 0, 0)) {
      const { left, top, unit } = unitsOf(cell)
      for (const { x, y, code } of cell.piece.countries.filter(({ from }) => from <= zoom)) {
        const at = { x: left + x * unit, y: top + y * unit }
        put(at, countryName(code), remPx(LARGE_REM), 'country')
      }
    }
  }
  for (const { at, name, from, isCapital } of towns.toSorted((a, b) => a.from - b.from)) {
    const size = remPx(isCapital || zoom - from >= LARGE_AFTER ? LARGE_REM : SMALL_REM)
    put(at, name, size, isCapital ? 'capital' : 'town')
  }
  return labels
}

type Side = Pick<Label, 'dx' | 'dy' | 'align'>
const OVER: Side = { dx: 0, dy: 0, align: 'center' }

/** Where a name may be beside its dot, the best first. */
function sidesOf(away: number, size: number): readonly Side[] {
  return [
    { dx: away, dy: 0, align: 'left' },
    { dx: -away, dy: 0, align: 'right' },
    { dx: 0, dy: -away - size / 2, align: 'center' },
    { dx: 0, dy: away + size / 2, align: 'center' },
  ]
}

function isCovered({ x, y }: Place, { left, top, right, bottom }: Cover): boolean {
  return x >= left && x <= right && y >= top && y <= bottom
}

const names = new Intl.DisplayNames(language, { type: 'region', fallback: 'code' })
const countryName = (code: string) => names.of(code) ?? code

function drawLabels(frame: Frame, labels: readonly Label[], colours: Palette): void {
  const { pen } = frame
  const family = getComputedStyle(document.documentElement).getPropertyValue('--font')
  const radius = 2 * enlargement()
  pen.textBaseline = 'middle'
  pen.lineJoin = 'round'
  pen.strokeStyle = colours('--map-land')
  pen.fillStyle = colours('--map-town')
  for (const { at, text, size, dx, dy, align, kind, hasDot } of labels) {
    const [x, y] = [frame.x(at), frame.y(at)]
    pen.globalAlpha = kind === 'country' ? 0.75 : 1
    if (hasDot) {
      pen.beginPath()
      pen.arc(x, y, kind === 'capital' ? 1.5 * radius : radius, 0, 2 * Math.PI)
      pen.fill()
    }
    pen.font = `${kind === 'town' ? 500 : 600} ${size}px ${family}`
    pen.textAlign = align
    pen.lineWidth = 3
    pen.strokeText(text, x + dx, y + dy)
    pen.fillText(text, x + dx, y + dy)
  }
  pen.globalAlpha = 1
}
