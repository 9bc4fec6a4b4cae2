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
import { dateTime } from '../format.ts'
import { colour } from './colour.ts'
import { decibels, SIGNAL_COLOURS, signalOf } from './snr.ts'
import type { Way } from './traceroute.ts'

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
      for (const { nodeNum, neighborNum, snr } of shown) {
        // The signal travels from the neighbour to the node that hears it.
        const from = locate(neighborNum)
        const to = locate(nodeNum)
        if (from === undefined || to === undefined) continue
        const token = SIGNAL_COLOURS[signalOf(snr)]
        const path = numbers ? bend(map, from, to) : [from, to]
        polyline(path, style(token, { weight: numbers ? 2 : 1.5, opacity: numbers ? 0.9 : 0.55 })).addTo(links)
        if (numbers) hopLabel(map, path, snr, decibels(snr)).addTo(links)
      }
    },
    showWays(shown) {
      ways.clearLayers()
      for (const way of shown) drawWay(map, way, locate, ways, style)
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

/** Hop by hop. What lies between two nodes is dashed when the nodes between them are unknown or tell no place. */
function drawWay(map: LeafletMap, { nodes, snr }: Way, locate: Locate, onto: LayerGroup, style: Style): void {
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
      hopLabel(map, path, heard, decibels(heard)).addTo(onto)
    }
    last = { at, index }
  }
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

/** The signal in the middle of a line, and an arrow that points where it goes. */
function hopLabel(map: LeafletMap, path: readonly LatLng[], snr: number | null, text: string) {
  const half = Math.floor(path.length / 2)
  const [before, at, after] = [path[half - 1], path[half], path[half + 1]]
  const box = document.createElement('span')
  box.className = `hop-label snr-${signalOf(snr)}`
  if (before !== undefined && after !== undefined) {
    const way = map.project(after, 0).subtract(map.project(before, 0))
    const arrow = document.createElement('i')
    arrow.style.rotate = `${Math.atan2(way.y, way.x)}rad`
    box.append(arrow)
  }
  box.append(text)
  return marker(at ?? [0, 0], {
    icon: divIcon({ className: 'hop-place', html: box, iconSize: [0, 0] }),
    interactive: false,
    keyboard: false,
    pane: 'signals',
  })
}
