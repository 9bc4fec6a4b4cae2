import {
  control,
  type FitBoundsOptions,
  type LatLng,
  latLngBounds,
  map as createLeaflet,
  type Map as LeafletMap,
} from 'leaflet'
import 'leaflet/dist/leaflet.css'
import { unitSystem } from '../../display.ts'
import { createArrangement } from './layers/arrangement.ts'
import { isDark, type Palette, readPalette } from '../../parts/map/colour.ts'
import { createLines, type ShownLines, type Spot } from './layers/lines.ts'
import { createDots, type Dots, type ShownNodes } from './layers/nodes.ts'
import { type Choice, createPointing } from './layers/pointing.ts'
import { createSheet } from '../../parts/map/sheet.ts'
import { createTip } from './layers/tip.ts'
import type { Ruler } from './layers/ruler.ts'
import type { Trail } from './layers/trail.ts'
import { createWaypoints } from './layers/waypoints.ts'
import { type MapView, MAX_ZOOM, rememberView } from './last-view.ts'
import type { Background } from './switches.ts'
import type { Tiles } from '../../parts/map/tiles/archive.ts'
import { startTiles } from '../../parts/map/tiles/start.ts'
import type { TileReports } from '../../parts/map/tiles/tiles.ts'
import type { Ground } from '../../parts/map/world/ground.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import type { Waypoint } from './waypoints/waypoint.ts'

/** What is brought into sight, once for each `key`: these nodes, and places where one of them was. */
export type Focus = {
  readonly key: string
  readonly nodeNums: ReadonlySet<number>
  readonly track: readonly Spot[]
}

/** For what is loaded later and draws on the map itself. */
export type MapParts = {
  readonly map: LeafletMap
  readonly dots: Dots
  readonly palette: () => Palette
  /** Calls `redraw` after the colour scheme has changed, until the returned function is called. */
  onRecolour(redraw: () => void): () => void
}

export type MeshMap = {
  readonly parts: MapParts
  /** The chosen node is marked. It is also brought into sight if it was not chosen before. */
  showNodes(shown: ShownNodes, hasNames: boolean, focus: Focus | null): void
  showLines(shown: ShownLines): void
  /** Where one node was, oldest first. */
  showTrack(track: readonly Spot[]): void
  showWaypoints(waypoints: readonly Waypoint[]): void
  /** `hasWorld`: whether the built-in map lies under them. */
  showTiles(tiles: Tiles | null, background: Background, hasWorld: boolean): void
  /** Redraws after the colour scheme has changed. */
  recolour(): void
  /** Brings a place into sight. */
  goTo(place: { readonly latitude: number; readonly longitude: number }): void
  middle(): { readonly lat: number; readonly lng: number }
  /** Zooms to show all nodes. */
  fit(): void
  /** Keeps this node in the middle while it moves; null: none. */
  follow(nodeNum: number | null): void
  /** For measuring; its code is loaded on first use. */
  ruler(): Promise<Ruler>
  /** For layers whose code is loaded on first use. */
  use<T>(make: (map: LeafletMap, palette: () => Palette) => T): T
  destroy(): void
}

const NEAR_ZOOM = 13
/** What is brought into sight is not shown larger than this. */
const FIT_ZOOM = 15
/** A node pressed on the map moves the view only if that would show it this many levels larger, or more of it. */
const WORTH_MOVING = 2

const INSET = { scrollWheelZoom: false, touchZoom: false, keyboard: false } as const
/** An inset has no legend at its top. */
const INSET_PADDING = { paddingTopLeft: [44, 44], paddingBottomRight: [56, 28] } as const satisfies FitBoundsOptions

const PADDING = { paddingTopLeft: [36, 84], paddingBottomRight: [56, 36] } as const satisfies FitBoundsOptions

/**
 * Leaflet with canvases that are drawn whole: thousands of nodes and lines need no elements. `start`: what it shows
 * first; null: all nodes. `isInset`: a part of a page that scrolls, so wheel, keys and fingers move the page; its view is
 * not kept.
 */
export function createMap(
  box: HTMLElement,
  { start, isInset }: { readonly start: MapView | null; readonly isInset: boolean },
  choice: Choice,
  reports: TileReports,
): MeshMap {
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
  const map = createLeaflet(box, {
    zoomAnimation: !isStill,
    fadeAnimation: !isStill,
    markerZoomAnimation: !isStill,
    inertia: !isStill,
    attributionControl: false,
    zoomControl: false,
    // Not that of its tiles.
    minZoom: 0,
    zoomSnap: 0.5,
    maxZoom: MAX_ZOOM,
    worldCopyJump: true,
    ...(isInset && { ...INSET, dragging: matchMedia('(pointer: fine)').matches }),
  })
  map.setView(start === null ? [30, 10] : [start.lat, start.lng], start?.zoom ?? 2)
  const isImperial = unitSystem.peek() === 'imperial'
  control.zoom({ position: 'bottomright' }).addTo(map)
  control.scale({ imperial: isImperial, metric: !isImperial, position: 'bottomright' }).addTo(map)
  let colours = readPalette()
  const palette = () => colours
  const dots = createDots(map, palette)
  const lines = createLines(map, dots, palette)
  const ground = createSheet(map, { pane: 'ground', zIndex: 390 }, (frame) => {
    dots.drawCells(frame)
    return lines.draw(frame)
  })
  const tip = createTip(map)
  const waypoints = createWaypoints(map, tip)
  const top = createSheet(map, { pane: 'dots', zIndex: 400 }, dots.draw)
  const choose = (nodeId: string | null) => {
    wasPressed = nodeId !== null
    choice.choose(nodeId)
  }
  createPointing(
    map,
    { dots, tip, spotAt: (at) => trail?.spotAt(at) ?? null, take: (at) => ruler?.add(at) === true },
    { ...choice, choose },
  )
  let isPlaced = start !== null
  let lastChosen: number | null = null
  let lastFocus: string | null = null
  let wasPressed = false
  let fitted: { readonly wanted: readonly LatLng[]; readonly center: LatLng; readonly zoom: number } | null = null
  let trail: Trail | null = null
  let ruler: Ruler | null = null
  let lead: number | null = null
  let track: readonly Spot[] = []
  let under: Ground | null = null
  let isGone = false
  const redraws = new Set<() => void>()
  let named = true
  let bright: ReadonlySet<number> | null = null
  let dropTiles = () => {}
  let tiles: Tiles | null = null
  let background: Background = 'auto'
  let places: readonly LatLng[] = []
  const arrange = createArrangement(map, {
    dots,
    lines,
    waypoints,
    placeTimes: (occupied) => trail?.placeTimes(occupied),
    placeTowns: (occupied) => under?.placeNames(occupied),
    named: () => (named ? (bright ?? 'all') : 'none'),
  })
  const next = onceAFrame()
  map.on('moveend resize', () => next.ask('arrange', arrange))
  map.on('moveend', () => {
    const { lat, lng } = map.getCenter()
    if (isPlaced && !isInset) rememberView({ lat, lng, zoom: map.getZoom() })
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
    drawnGround = [dots.version(), Math.floor(now / MINUTE_MS), look.precision, look.colouring, bright]
    return drawnGround.some((part, index) => part !== before[index])
  }
  let hasWorld = false
  const layUnder = () => {
    const isShown = background !== 'none'
    under?.show(hasWorld && isShown, isShown ? tiles : null)
  }
  const drawTiles = () => {
    dropTiles()
    layUnder()
    const dark = background === 'auto' ? isDark() : background === 'dark'
    const isDimmed = dark && !(tiles?.kind === 'url' && tiles.darkUrl !== null)
    box.classList.toggle('is-dark', isDimmed)
    dropTiles = tiles === null || background === 'none' ? () => {} : startTiles(map, tiles, dark, reports)
  }
  // Its code is not needed for the map to stand.
  const layGround = async () => {
    const { createGround } = await import('../../parts/map/world/ground.ts')
    if (isGone) return
    under = createGround(map, palette, () => next.ask('arrange', arrange))
    layUnder()
  }
  layGround().catch(console.error)
  // The visible part stays visible when the panel opens.
  const resized = new ResizeObserver(() => {
    const isAsFitted = fitted !== null && map.getZoom() === fitted.zoom && map.getCenter().equals(fitted.center, 1e-6)
    map.invalidateSize({ animate: false })
    // Nobody has moved the map since.
    if (isAsFitted && fitted !== null && lastFocus !== null) return fitTo(fitted.wanted)
    const at = lastChosen === null ? undefined : dots.locate(lastChosen)
    if (at !== undefined && !map.getBounds().pad(-0.1).contains(at)) map.panTo(at, { animate: false })
  })
  resized.observe(box)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => {
    colours = readPalette()
    under?.recolour()
    drawTiles()
    trail?.redraw()
    ruler?.redraw()
    for (const each of redraws) each()
    redraw()
  }
  scheme.addEventListener('change', recolour)
  const fitTo = (wanted: readonly LatLng[]) => {
    // If there are none, the map moves to the next nodes when they arrive.
    isPlaced = wanted.length > 0
    if (!isPlaced) return
    map.fitBounds(latLngBounds([...wanted]), {
      ...(isInset ? INSET_PADDING : PADDING),
      maxZoom: FIT_ZOOM,
      animate: false,
    })
    fitted = { wanted, center: map.getCenter(), zoom: map.getZoom() }
  }
  const isWellShown = (wanted: readonly LatLng[]) => {
    const bounds = latLngBounds([...wanted])
    const zoom = Math.min(NEAR_ZOOM, map.getBoundsZoom(bounds))
    return map.getBounds().contains(bounds) && zoom - map.getZoom() < WORTH_MOVING
  }
  const bringIntoSight = ({ key, nodeNums, track }: Focus) => {
    const ends = [...nodeNums].flatMap((nodeNum) => dots.locate(nodeNum) ?? [])
    if (key === lastFocus || ends.length === 0) return
    lastFocus = key
    const wanted = [...ends, ...track.map(({ latitude, longitude }) => map.wrapLatLng([latitude, longitude]))]
    if (wasPressed && isWellShown(wanted)) return
    const [only] = wanted
    // A node that hears nobody is shown among those around it.
    if (wanted.length === 1 && only !== undefined) {
      // If its position is rounded, with all of its area.
      const areas = [...nodeNums].flatMap((nodeNum) => dots.areaOf(nodeNum) ?? [])
      const zoom = Math.min(NEAR_ZOOM, ...areas.map((area) => map.getBoundsZoom(area)))
      map.setView(only, zoom, { animate: false })
    } else fitTo(wanted)
  }
  const keepInMiddle = () => {
    const at = lead === null ? undefined : dots.locate(lead)
    if (at !== undefined) map.panTo(at, { animate: !isStill })
  }
  // The user wants to see something else.
  const letGo = () => {
    if (lead !== null) choice.letGo()
  }
  map.on('dragstart', letGo)
  box.addEventListener('keydown', ({ key }) => {
    if (key.startsWith('Arrow')) letGo()
  })
  const showTrail = async () => {
    if (trail === null && track.length > 1) {
      const { createTrail } = await import('./layers/trail.ts')
      if (isGone) return
      trail ??= createTrail(map, palette)
    }
    trail?.show(track)
    next.ask('arrange', arrange)
  }
  return {
    parts: {
      map,
      dots,
      palette,
      onRecolour(each) {
        redraws.add(each)
        return () => redraws.delete(each)
      },
    },
    showNodes(shown, hasNames, focus) {
      dots.show(shown)
      named = hasNames
      bright = shown.bright
      places = shown.placed.flatMap(({ nodeNum }) => dots.locate(nodeNum) ?? [])
      const { chosen } = shown
      const at = chosen === null || chosen === lastChosen ? undefined : dots.locate(chosen)
      if (chosen === null || at !== undefined) lastChosen = chosen
      if (at !== undefined) {
        if (!isPlaced) map.setView(at, NEAR_ZOOM, { animate: false })
        else if (!map.getBounds().pad(-0.1).contains(at)) map.panTo(at, { animate: !isStill })
        isPlaced = true
      } else if (!isPlaced) fitTo(places)
      if (focus !== null) bringIntoSight(focus)
      else lastFocus = null
      keepInMiddle()
      if (chosen === null) wasPressed = false
      if (isGroundOld(shown)) redraw()
      else redrawTop()
    },
    showLines(shown) {
      lines.show(shown)
      redraw()
    },
    showTrack(spots) {
      track = spots
      // Without its code there is no track; the list beside the map has its places all the same.
      showTrail().catch(console.error)
    },
    showWaypoints(shown) {
      waypoints.show(shown)
      redraw()
    },
    showTiles(wanted, look, isAlone) {
      tiles = wanted
      background = look
      hasWorld = isAlone
      drawTiles()
    },
    recolour,
    goTo: ({ latitude, longitude }) =>
      map.setView([latitude, longitude], Math.max(map.getZoom(), NEAR_ZOOM), { animate: !isStill }),
    middle: () => map.getCenter(),
    fit: () => fitTo(places),
    follow(nodeNum) {
      lead = nodeNum
      keepInMiddle()
    },
    async ruler() {
      const { createRuler } = await import('./layers/ruler.ts')
      return (ruler ??= createRuler(map, palette))
    },
    use: (make) => make(map, palette),
    destroy() {
      isGone = true
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
