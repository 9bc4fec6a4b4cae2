import {
  canvas,
  circleMarker,
  divIcon,
  type LatLng,
  type LayerGroup,
  layerGroup,
  type Map as LeafletMap,
  marker,
  point,
  polyline,
  type PolylineOptions,
} from 'leaflet'
import { dateTime } from '../../../format.ts'
import { colour } from './colour.ts'
import { type Crowd, remPx, textWidth } from './crowd.ts'
import { decibels, SIGNAL_COLOURS, signalOf } from '../../nodes/snr.ts'
import type { Way } from '../../topology/traceroute.ts'

export type Link = { readonly nodeNum: number; readonly neighborNum: number; readonly snr: number }
export type Spot = { readonly latitude: number; readonly longitude: number; readonly time: number }

/** Where a node is drawn; undefined: it is not. */
export type Locate = (nodeNum: number) => LatLng | undefined

export type Lines = {
  /** Who hears whom. `numbers`: with the signal written on each, and both directions side by side. */
  showLinks(links: readonly Link[], numbers: boolean): void
  showWays(ways: readonly Way[]): void
  /** Where one node was, oldest first. */
  showTrack(spots: readonly Spot[]): void
  /** Places the signals where there is room along their lines, and hides those without room. */
  placeSignals(crowd: Crowd): void
}

/** How far a line bends to its right, as a part of its length: so that there and back lie side by side. */
const BEND = 0.12
const BEND_STEPS = 24
/** More dots than these would hide the track. */
const MOST_DOTS = 300

export function createLines(map: LeafletMap, locate: Locate): Lines {
  // Under the nodes, and their signals above everything.
  map.createPane('lines').style.zIndex = '390'
  map.createPane('signals').style.zIndex = '630'
  const renderer = canvas({ pane: 'lines', padding: 0.3 })
  const links = layerGroup().addTo(map)
  const ways = layerGroup().addTo(map)
  const track = layerGroup().addTo(map)
  let linkSignals: Signal[] = []
  let waySignals: Signal[] = []
  const style = (token: string, more: PolylineOptions = {}): PolylineOptions => ({
    color: colour(token),
    interactive: false,
    pane: 'lines',
    renderer,
    // An arc of few points would become a polygon.
    smoothFactor: 0.2,
    ...more,
  })
  return {
    showLinks(shown, numbers) {
      links.clearLayers()
      linkSignals = []
      for (const { nodeNum, neighborNum, snr } of shown) {
        // The signal travels from the neighbour to the node that hears it.
        const from = locate(neighborNum)
        const to = locate(nodeNum)
        if (from === undefined || to === undefined) continue
        const token = SIGNAL_COLOURS[signalOf(snr)]
        const path = numbers ? bend(map, from, to) : [from, to]
        polyline(path, style(token, { weight: numbers ? 2 : 1.5, opacity: numbers ? 0.9 : 0.7 })).addTo(links)
        if (numbers) linkSignals.push(createSignal(map, path, snr, links))
      }
    },
    showWays(shown) {
      ways.clearLayers()
      waySignals = shown.flatMap((way) => drawWay(map, way, locate, ways, style))
    },
    placeSignals(crowd) {
      for (const signal of [...waySignals, ...linkSignals]) signal.place(crowd)
    },
    showTrack(spots) {
      track.clearLayers()
      if (spots.length < 2) return
      const path = spots.map(({ latitude, longitude }): [number, number] => [latitude, longitude])
      polyline(path, style('--surface', { weight: 6, opacity: 0.7 })).addTo(track)
      polyline(path, style('--accent', { weight: 3, opacity: 0.9 })).addTo(track)
      if (spots.length > MOST_DOTS) return
      for (const { latitude, longitude, time } of spots) {
        circleMarker([latitude, longitude], {
          color: colour('--surface'),
          weight: 1,
          radius: 3.5,
          fillOpacity: 1,
          fillColor: colour('--accent'),
        })
          .bindTooltip(dateTime(time))
          .addTo(track)
      }
    },
  }
}

type Style = (token: string, more?: PolylineOptions) => PolylineOptions

/** Hop by hop. A hop is dashed if the nodes in between are unknown or have no position. */
function drawWay(map: LeafletMap, { nodes, snr }: Way, locate: Locate, onto: LayerGroup, style: Style): Signal[] {
  const signals: Signal[] = []
  let last: { at: LatLng; index: number } | null = null
  for (const [index, nodeNum] of nodes.entries()) {
    const at = nodeNum === null ? undefined : locate(nodeNum)
    if (at === undefined) continue
    if (last !== null) {
      const isWhole = index - last.index === 1
      const heard = isWhole ? (snr[index - 1] ?? null) : null
      const path = bend(map, last.at, at)
      const token = SIGNAL_COLOURS[signalOf(heard)]
      polyline(path, style('--surface', { weight: 6, opacity: 0.7 })).addTo(onto)
      polyline(path, style(token, { weight: 3, opacity: 1, ...(!isWhole && { dashArray: '3 8' }) })).addTo(onto)
      signals.push(createSignal(map, path, heard, onto))
    }
    last = { at, index }
  }
  return signals
}

/** A flat arc to the right of the way from `from` to `to`. */
function bend(map: LeafletMap, from: LatLng, to: LatLng): LatLng[] {
  const a = map.project(from, 0)
  const b = map.project(to, 0)
  const along = b.subtract(a)
  const middle = a.add(along.divideBy(2)).add(point(-along.y, along.x).multiplyBy(BEND * 2))
  return Array.from({ length: BEND_STEPS + 1 }, (_, index) => {
    const part = index / BEND_STEPS
    const rest = 1 - part
    const at = a
      .multiplyBy(rest * rest)
      .add(middle.multiplyBy(2 * rest * part))
      .add(b.multiplyBy(part * part))
    return map.unproject(at, 0)
  })
}

type Signal = { place(crowd: Crowd): void }

/** Positions for a signal along its line, the best one first. */
const PARTS = [0.5, 0.38, 0.62, 0.26, 0.74]
const LABEL_REM = 0.75
const LABEL_HEIGHT_REM = 1.25
/** Arrow, gap and border of a label. */
const LABEL_EXTRA_REM = 1.625

/** The signal on a line, and an arrow that points where it goes. */
function createSignal(map: LeafletMap, path: readonly LatLng[], snr: number | null, onto: LayerGroup): Signal {
  const text = decibels(snr)
  const box = document.createElement('span')
  box.className = `hop-label snr-${signalOf(snr)}`
  const arrow = document.createElement('i')
  box.append(arrow, text)
  const label = marker(path[0] ?? [0, 0], {
    icon: divIcon({ className: 'hop-place', html: box, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'signals',
  }).addTo(onto)
  const width = textWidth(text, '--font', remPx(LABEL_REM)) + remPx(LABEL_EXTRA_REM)
  const height = remPx(LABEL_HEIGHT_REM)
  return {
    place(crowd) {
      const places = PARTS.map((part) => {
        const index = Math.round(part * (path.length - 1))
        const at = path[index] ?? label.getLatLng()
        const { x, y } = map.latLngToContainerPoint(at)
        const room = { x: x - width / 2, y: y - height / 2, width, height }
        return { index, at, room }
      })
      const found = places.find(({ room }) => crowd.isFree(room))
      box.classList.toggle('crowded', found === undefined)
      if (found === undefined) return
      crowd.take(found.room)
      label.setLatLng(found.at)
      const [before, after] = [path[found.index - 1], path[found.index + 1]]
      if (before === undefined || after === undefined) return
      const way = map.project(after, 0).subtract(map.project(before, 0))
      arrow.style.rotate = `${Math.atan2(way.y, way.x)}rad`
    },
  }
}
