import type { Archive, Tiles } from './archive.ts'

/** Pixels at zoom 0, from the upper left corner of the world. */
export type Cover = { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number }

const TILE_PX = 256

/** The zoom level from which a map file is drawn: where it is half as wide as a tile. Before that, a tile is mostly empty. */
export function firstZoom({ bounds: [west, , east], minZoom }: Archive): number {
  const whole = Math.floor(Math.log2(360 / Math.max(1e-6, east - west)))
  return Math.max(minZoom, Math.min(16, whole - 1), 0)
}

/** What tiles hide of the built-in map at this zoom level; null: nothing. */
export function coverOf(tiles: Tiles | null, zoom: number): Cover | null {
  if (tiles?.kind !== 'archive' || Math.round(zoom) < firstZoom(tiles)) return null
  const [west, south, east, north] = tiles.bounds
  const size = TILE_PX / 2 ** Math.round(zoom)
  const across = (longitude: number) => (((longitude + 180) / 360) * TILE_PX) / size
  return {
    left: Math.floor(across(west)) * size,
    right: Math.ceil(across(east)) * size,
    top: Math.floor(down(north) / size) * size,
    bottom: Math.ceil(down(south) / size) * size,
  }
}

/** In Web Mercator. */
function down(latitude: number): number {
  const radians = (Math.max(-85.05, Math.min(85.05, latitude)) * Math.PI) / 180
  return ((1 - Math.asinh(Math.tan(radians)) / Math.PI) / 2) * TILE_PX
}
