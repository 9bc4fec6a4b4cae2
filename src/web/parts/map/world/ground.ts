import type { Map as LeafletMap } from 'leaflet'
import type { Palette } from '../colour.ts'
import type { Occupied } from '../occupied.ts'
import { createSheet } from '../sheet.ts'
import type { Tiles } from '../tiles/archive.ts'
import { graticule } from '../tiles/graticule.ts'
import { createPieces } from './pieces.ts'
import { drawShapes } from './shapes.ts'
import { createTowns } from './towns.ts'
import './world.css'

export type Ground = {
  /** Whether coasts, borders and towns are shown under the lines of latitude and longitude, and what lies above them. */
  show(hasWorld: boolean, tiles: Tiles | null): void
  /** Writes the names of towns where there is room. */
  placeNames(occupied: Occupied): void
  recolour(): void
}

/** What lies under everything else, and needs no other host. `onNames`: there may be other names now. */
export function createGround(map: LeafletMap, palette: () => Palette, onNames: () => void): Ground {
  let isShown = false
  let isGone = false
  let tiles: Tiles | null = null
  let frame = 0
  const pieces = createPieces(() => {
    if (frame !== 0 || isGone) return
    frame = requestAnimationFrame(() => {
      frame = 0
      shapes.redraw()
      onNames()
    })
  })
  map.on('unload', () => {
    isGone = true
    cancelAnimationFrame(frame)
  })
  const shapes = createSheet(map, { pane: 'world', zIndex: 140 }, (frame) => {
    if (isShown) drawShapes(map, pieces, frame, palette())
  })
  const towns = createTowns(map, pieces, palette)
  const grid = graticule(map, palette)
  return {
    show(hasWorld, above) {
      if (isShown === hasWorld && tiles === above) return
      isShown = hasWorld
      tiles = above
      map.getContainer().classList.toggle('has-world', hasWorld)
      shapes.redraw()
      onNames()
    },
    placeNames: (occupied) => towns.place(isShown ? occupied : null, tiles),
    recolour() {
      shapes.redraw()
      towns.redraw()
      grid.draw()
    },
  }
}
