import { control, type LatLng, latLngBounds, map as createLeaflet } from 'leaflet'
import 'leaflet/dist/leaflet.css'
import { unitSystem } from '../../display.ts'
import { createArrangement } from './layers/arrangement.ts'
import { isDark, readPalette } from '../../parts/map/colour.ts'
import { createLines, type ShownLines } from './layers/lines.ts'
import { createDots, type ShownNodes } from './layers/nodes.ts'
import { type Choice, createPointing } from './layers/pointing.ts'
import { createSheet } from '../../parts/map/sheet.ts'
import { createTip } from './layers/tip.ts'
import { createWaypoints } from './layers/waypoints.ts'
import { recallView, rememberView } from './last-view.ts'
import type { Background } from './switches.ts'
import type { Tiles } from '../../parts/map/tiles/archive.ts'
import { graticule } from '../../parts/map/tiles/graticule.ts'
import { showTiles, type TileReports } from '../../parts/map/tiles/tiles.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import type { Waypoint } from './waypoint.ts'

/** A route whose nodes are brought into sight, once for each `key`. */
export type ShownRoute = { readonly key: string; readonly nodeNums: ReadonlySet<number> }

export type MeshMap = {
  /** The chosen node is marked. It is also brought into sight if it was not chosen before. */
  showNodes(shown: ShownNodes, hasNames: boolean, route: ShownRoute | null): void
  showLines(shown: ShownLines): void
  showWaypoints(waypoints: readonly Waypoint[]): void
  showTiles(tiles: Tiles | null, background: Background): void
  /** Redraws after the colour scheme has changed. */
  recolour(): void
  /** Brings a place into sight. */
  goTo(place: { readonly latitude: number; readonly longitude: number }): void
  /** Zooms to show all nodes. */
  fit(): void
  destroy(): void
}

const NEAR_ZOOM = 13
const MAX_ZOOM = 20

/** Leaflet with canvases that are drawn whole: thousands of nodes and lines need no elements. */
export function createMap(box: HTMLElement, choice: Choice, reports: TileReports): MeshMap {
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
  const map = createLeaflet(box, {
    zoomAnimation: !isStill,
    fadeAnimation: !isStill,
    markerZoomAnimation: !isStill,
    inertia: !isStill,
    attributionControl: false,
    zoomControl: false,
    zoomSnap: 0.5,
    maxZoom: MAX_ZOOM,
    worldCopyJump: true,
  })
  const remembered = recallView()
  map.setView(remembered === null ? [30, 10] : [remembered.lat, remembered.lng], remembered?.zoom ?? 2)
  const isImperial = unitSystem.peek() === 'imperial'
  control.zoom({ position: 'bottomright' }).addTo(map)
  control.scale({ imperial: isImperial, metric: !isImperial, position: 'bottomright' }).addTo(map)
  let colours = readPalette()
  const palette = () => colours
  const grid = graticule(map, palette)
  const dots = createDots(map, palette)
  const lines = createLines(map, dots, palette)
  const ground = createSheet(map, { pane: 'ground', zIndex: 390 }, (frame) => {
    dots.drawCells(frame)
    return lines.draw(frame)
  })
  const tip = createTip(map)
  const waypoints = createWaypoints(map, tip)
  const top = createSheet(map, { pane: 'dots', zIndex: 400 }, dots.draw)
  createPointing(map, { dots, lines, tip }, choice)
  let isPlaced = remembered !== null
  let lastChosen: number | null = null
  let lastRoute: string | null = null
  let named = true
  let bright: ReadonlySet<number> | null = null
  let dropTiles = () => {}
  let tiles: Tiles | null = null
  let background: Background = 'auto'
  let places: readonly LatLng[] = []
  const arrange = createArrangement(map, { dots, lines, waypoints, named: () => (named ? (bright ?? 'all') : 'none') })
  const next = onceAFrame()
  map.on('moveend resize', () => next.ask('arrange', arrange))
  map.on('moveend', () => {
    const { lat, lng } = map.getCenter()
    if (isPlaced) rememberView({ lat, lng, zoom: map.getZoom() })
  })
  /** Once per frame for everything that changes together. */
  const redraw = () => {
    next.ask('ground', ground.redraw)
    redrawTop()
  }
  const redrawTop = () =>
    next.ask('top', () => {
      top.redraw()
      next.ask('arrange', arrange)
    })
  /**
   * The properties of nodes that affect the ground. The time heard is not among them, so thousands of lines are not
   * redrawn each time.
   */
  let drawnGround: readonly unknown[] = []
  const isGroundOld = ({ now, look, bright }: ShownNodes) => {
    const before = drawnGround
    drawnGround = [dots.version(), Math.floor(now / MINUTE_MS), look.precision, bright]
    return drawnGround.some((part, index) => part !== before[index])
  }
  const drawTiles = () => {
    dropTiles()
    const dark = background === 'auto' ? isDark() : background === 'dark'
    const isDimmed = dark && !(tiles?.kind === 'url' && tiles.darkUrl !== null)
    box.classList.toggle('is-dark', isDimmed)
    dropTiles = tiles === null || background === 'none' ? () => {} : showTiles(map, tiles, dark, reports)
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
    colours = readPalette()
    grid.draw()
    drawTiles()
    redraw()
  }
  scheme.addEventListener('change', recolour)
  const fitTo = (wanted: readonly LatLng[]) => {
    // If there are none, the map moves to the next nodes when they arrive.
    isPlaced = wanted.length > 0
    if (!isPlaced) return
    map.fitBounds(latLngBounds([...wanted]), {
      paddingTopLeft: [36, 84],
      paddingBottomRight: [56, 36],
      maxZoom: 15,
      animate: false,
    })
  }
  const fitRoute = ({ key, nodeNums }: ShownRoute) => {
    const wanted = [...nodeNums].flatMap((nodeNum) => dots.locate(nodeNum) ?? [])
    if (key === lastRoute || wanted.length === 0) return
    lastRoute = key
    fitTo(wanted)
  }
  return {
    showNodes(shown, hasNames, route) {
      dots.show(shown)
      named = hasNames
      bright = shown.bright
      places = shown.placed.flatMap(({ nodeNum }) => dots.locate(nodeNum) ?? [])
      const { chosen } = shown
      const at = chosen === null || chosen === lastChosen ? undefined : dots.locate(chosen)
      if (chosen === null || at !== undefined) lastChosen = chosen
      if (route !== null) fitRoute(route)
      else lastRoute = null
      if (at !== undefined) {
        if (!isPlaced) map.setView(at, NEAR_ZOOM, { animate: false })
        else if (!map.getBounds().pad(-0.1).contains(at)) map.panTo(at, { animate: !isStill })
        isPlaced = true
      } else if (!isPlaced) fitTo(places)
      if (isGroundOld(shown)) redraw()
      else redrawTop()
    },
    showLines(shown) {
      lines.show(shown)
      redraw()
    },
    showWaypoints(shown) {
      waypoints.show(shown)
      redraw()
    },
    showTiles(wanted, look) {
      tiles = wanted
      background = look
      drawTiles()
    },
    recolour,
    goTo: ({ latitude, longitude }) =>
      map.setView([latitude, longitude], Math.max(map.getZoom(), NEAR_ZOOM), { animate: !isStill }),
    fit: () => fitTo(places),
    destroy() {
      scheme.removeEventListener('change', recolour)
      resized.disconnect()
      next.stop()
      dropTiles()
      map.remove()
    },
  }
}

/** Runs each task once in the next frame, however often it was requested. */
function onceAFrame() {
  const tasks = new Map<string, () => void>()
  let frame = 0
  const work = () => {
    // A task may request another, which then runs in the same frame.
    for (const [name, task] of tasks) {
      tasks.delete(name)
      task()
    }
    frame = 0
  }
  return {
    ask(name: string, task: () => void) {
      tasks.set(name, task)
      if (frame === 0) frame = requestAnimationFrame(work)
    },
    stop: () => cancelAnimationFrame(frame),
  }
}
