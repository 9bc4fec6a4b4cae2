import { divIcon, type LatLng, layerGroup, type Map as LeafletMap, marker, type Marker, type Point } from 'leaflet'
import { clock, day } from '../../../format.ts'
import type { Palette } from '../../../parts/map/colour.ts'
import { type Box, type Occupied, remPx, textWidth } from '../../../parts/map/occupied.ts'
import { createSheet, type Frame, type Place } from '../../../parts/map/sheet.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import type { Spot } from './lines.ts'

export type Trail = {
  /** Where one node was, oldest first; none: nothing is drawn. */
  show(track: readonly Spot[]): void
  redraw(): void
  /** The time at which the track was at a point of the map's box; null: no track is there. */
  spotAt(at: Point): { readonly at: LatLng; readonly time: number } | null
  /** Writes times beside the track where there is room: first and last, then those between. */
  placeTimes(occupied: Occupied): void
}

/** More dots than these would hide the track. */
const MAX_DOTS = 300
const MAX_TIMES = 24
const SPOT_PX = 8
/** Sizes of a time in rem, as in the styles. */
const TIME_REM = 0.75
const HEIGHT_REM = 1.125
const EXTRA_REM = 0.625
/** From the middle of a dot to a time beside it. */
const AWAY_PX = 8

type Stop = { readonly at: LatLng; readonly world: Place; readonly time: number }

/** The track of one node, above all nodes: mostly it lies around the node itself. */
export function createTrail(map: LeafletMap, palette: () => Palette): Trail {
  map.createPane('times').style.zIndex = '615'
  const times = layerGroup().addTo(map)
  let stops: readonly Stop[] = []
  let drawn = new Map<string, Marker>()
  const sheet = createSheet(map, { pane: 'trail', zIndex: 410 }, (frame) => drawTrail(frame, stops, palette()))
  const write = (wanted: Map<string, Stop>) => {
    for (const [key, old] of drawn) if (!wanted.has(key)) times.removeLayer(old)
    drawn = new Map(
      [...wanted].map(([key, { at, time }]) => [key, drawn.get(key) ?? timeMarker(at, time).addTo(times)]),
    )
  }
  return {
    show(track) {
      stops = track.map(({ latitude, longitude, time }) => {
        const at = map.wrapLatLng([latitude, longitude])
        return { at, world: map.project(at, 0), time }
      })
      sheet.redraw()
    },
    redraw: sheet.redraw,
    spotAt(at) {
      const { x, y } = map.containerPointToLayerPoint(at).add(map.getPixelOrigin())
      const scale = map.getZoomScale(map.getZoom(), 0)
      if (stops.length > MAX_DOTS || stops.length < 2) return null
      return stops.findLast(({ world }) => Math.hypot(world.x * scale - x, world.y * scale - y) <= SPOT_PX) ?? null
    },
    placeTimes(occupied) {
      const wanted = new Map<string, Stop>()
      const bounds = map.getBounds()
      for (const stop of stops.length < 2 ? [] : spread(stops)) {
        if (wanted.size === MAX_TIMES) break
        const room = roomBeside(map.latLngToContainerPoint(stop.at), timeText(stop.time))
        if (!bounds.contains(stop.at) || !occupied.isFree(room)) continue
        occupied.take(room)
        wanted.set(`${stop.at.lat} ${stop.at.lng} ${stop.time}`, stop)
      }
      write(wanted)
    },
  }
}

/** The last and the first, then the middle of each part, so that times are written evenly along the track. */
function* spread(stops: readonly Stop[]): Generator<Stop> {
  const given = new Set<number>()
  for (let parts = 1; parts / 2 < Math.min(stops.length, MAX_TIMES * 2); parts *= 2) {
    for (let part = parts; part >= 0; part--) {
      const index = Math.round((part / parts) * (stops.length - 1))
      const stop = stops[index]
      if (stop === undefined || given.has(index)) continue
      given.add(index)
      yield stop
    }
  }
}

/** The time, with its day if that is not within the last 24 hours. */
function timeText(time: number): string {
  return Date.now() - time < DAY_MS ? clock(time) : `${day(time)}, ${clock(time)}`
}

function roomBeside({ x, y }: Point, text: string): Box {
  const height = remPx(HEIGHT_REM)
  const width = textWidth(text, '--font', remPx(TIME_REM)) + remPx(EXTRA_REM)
  return { x: x + AWAY_PX, y: y - height / 2, width, height }
}

function timeMarker(at: LatLng, time: number): Marker {
  const text = document.createElement('time')
  text.dateTime = new Date(time).toISOString()
  text.textContent = timeText(time)
  return marker(at, {
    icon: divIcon({ className: 'track-time', html: text, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'times',
  })
}

function drawTrail({ pen, x, y }: Frame, stops: readonly Stop[], colours: Palette): void {
  if (stops.length < 2) return
  pen.lineJoin = 'round'
  pen.beginPath()
  for (const { world } of stops) pen.lineTo(x(world), y(world))
  for (const [token, width] of [
    ['--surface', 6],
    ['--accent', 3],
  ] as const) {
    pen.strokeStyle = colours(token)
    pen.lineWidth = width
    pen.stroke()
  }
  pen.fillStyle = colours('--accent')
  pen.strokeStyle = colours('--surface')
  pen.lineWidth = 1
  for (const { world } of stops.length > MAX_DOTS ? [] : stops) {
    pen.beginPath()
    pen.arc(x(world), y(world), 3.5, 0, 2 * Math.PI)
    pen.fill()
    pen.stroke()
  }
}
