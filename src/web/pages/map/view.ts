import { canvas, control, latLngBounds, type Map as LeafletMap, map as createLeaflet } from 'leaflet'
import 'leaflet/dist/leaflet.css'
import { isRecord } from '../../api.ts'
import type { Node } from '../../state/mesh.ts'
import { isDark } from './layers/colour.ts'
import { graticule } from './tiles/graticule.ts'
import { createArrangement } from './layers/arrangement.ts'
import { createLines, type Lines } from './layers/lines.ts'
import { createDots, placeOf } from './layers/nodes.ts'
import type { Tiles } from './tiles/archive.ts'
import { showTiles, type TileReports } from './tiles/tiles.ts'
import type { Waypoint } from './waypoint.ts'
import { createWaypoints } from './layers/waypoints.ts'

export type MeshMap = Omit<Lines, 'placeSignals'> & {
  /** `chosen` is marked, and brought into sight when it was another before. */
  showNodes(placed: readonly Node[], now: number, chosen: number | null): void
  showWaypoints(waypoints: readonly Waypoint[]): void
  showTiles(tiles: Tiles | null): void
  /** Brings a place into sight. */
  goTo(place: { readonly latitude: number; readonly longitude: number }): void
  /** Zooms to show all nodes. */
  fit(): void
  destroy(): void
}

const KEY = 'map-view'
const NEAR_ZOOM = 13
const MAX_ZOOM = 20

/** Leaflet on one canvas: thousands of nodes need no elements. Choosing nothing returns null. */
export function createMap(box: HTMLElement, onChoose: (nodeId: string | null) => void, reports: TileReports): MeshMap {
  const renderer = canvas({ padding: 0.3, tolerance: 6 })
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
  const map = createLeaflet(box, {
    zoomAnimation: !isStill,
    fadeAnimation: !isStill,
    markerZoomAnimation: !isStill,
    inertia: !isStill,
    renderer,
    attributionControl: false,
    zoomControl: false,
    zoomSnap: 0.5,
    maxZoom: MAX_ZOOM,
    worldCopyJump: true,
  })
  const remembered = recall()
  map.setView(remembered?.center ?? [30, 10], remembered?.zoom ?? 2)
  control.zoom({ position: 'bottomright' }).addTo(map)
  control.scale({ imperial: false, position: 'bottomright' }).addTo(map)
  const grid = graticule(map)
  const dots = createDots(map, onChoose)
  const lines = createLines(map, dots.locate)
  const waypoints = createWaypoints(map)
  let isPlaced = remembered !== null
  let lastChosen: number | null = null
  let shown: readonly Node[] = []
  let dropTiles = () => {}
  let tiles: Tiles | null = null
  const { arrange, stop } = createArrangement(map, { dots, lines, waypoints })
  map.on('click', () => onChoose(null))
  map.on('moveend resize', arrange)
  map.on('moveend', () => {
    if (isPlaced) remember(map)
  })
  const drawTiles = () => {
    dropTiles()
    const dark = isDark()
    box.classList.toggle('is-dark', dark)
    dropTiles = tiles === null ? () => {} : showTiles(map, tiles, dark, reports)
  }
  // The visible part stays visible when the panel opens.
  const resized = new ResizeObserver(() => {
    map.invalidateSize({ animate: false })
    const at = lastChosen === null ? undefined : dots.locate(lastChosen)
    if (at !== undefined && !map.getBounds().pad(-0.1).contains(at)) map.panTo(at, { animate: false })
  })
  resized.observe(box)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => {
    grid.draw()
    dots.recolour()
    drawTiles()
  }
  scheme.addEventListener('change', recolour)
  const fit = () => {
    const places = shown.flatMap((node) => placeOf(node) ?? [])
    // Without any, the next ones are shown when they come.
    isPlaced = places.length > 0
    if (!isPlaced) return
    map.fitBounds(latLngBounds(places), {
      paddingTopLeft: [36, 84],
      paddingBottomRight: [56, 36],
      maxZoom: 15,
      animate: false,
    })
  }
  return {
    showLinks(links, numbers) {
      lines.showLinks(links, numbers)
      arrange()
    },
    showWays(ways) {
      lines.showWays(ways)
      arrange()
    },
    showTrack(spots) {
      lines.showTrack(spots)
      dots.raise()
    },
    showNodes(placed, now, chosen) {
      shown = placed
      dots.show(placed, now, chosen)
      const at = chosen === null || chosen === lastChosen ? undefined : dots.locate(chosen)
      if (chosen === null || at !== undefined) lastChosen = chosen
      if (at !== undefined) {
        if (!isPlaced) map.setView(at, NEAR_ZOOM, { animate: false })
        else if (!map.getBounds().pad(-0.1).contains(at)) map.panTo(at, { animate: !isStill })
        isPlaced = true
      } else if (!isPlaced) fit()
      arrange()
    },
    showWaypoints(shown) {
      waypoints.show(shown)
      arrange()
    },
    showTiles(wanted) {
      tiles = wanted
      drawTiles()
    },
    goTo: ({ latitude, longitude }) =>
      map.setView([latitude, longitude], Math.max(map.getZoom(), NEAR_ZOOM), { animate: !isStill }),
    fit,
    destroy() {
      scheme.removeEventListener('change', recolour)
      resized.disconnect()
      stop()
      dropTiles()
      map.remove()
    },
  }
}

/** The last view of the map in this browser. */
function recall(): { center: [number, number]; zoom: number } | null {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null')
    if (!isRecord(stored)) return null
    const { lat, lng, zoom } = stored
    const isView = [lat, lng, zoom].every((value) => typeof value === 'number' && Number.isFinite(value))
    return isView ? { center: [Number(lat), Number(lng)], zoom: Number(zoom) } : null
  } catch {
    // Storage is blocked, or holds something else: the map then shows all nodes.
    return null
  }
}

function remember(map: LeafletMap): void {
  const { lat, lng } = map.getCenter()
  try {
    localStorage.setItem(KEY, JSON.stringify({ lat, lng, zoom: map.getZoom() }))
  } catch {
    // Storage is blocked: the view lasts until the page is left.
  }
}
