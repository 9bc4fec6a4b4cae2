import type { Map as LeafletMap } from 'leaflet'
import type { Tiles } from './archive.ts'
import type { TileReports } from './tiles.ts'

/** As `showTiles`, with the code for it, which a map without tiles does not need. */
export function startTiles(map: LeafletMap, tiles: Tiles, isDark: boolean, reports: TileReports): () => void {
  let isGone = false
  let remove = () => {}
  const start = async () => {
    try {
      const { showTiles } = await import('./tiles.ts')
      if (!isGone) remove = showTiles(map, tiles, isDark, reports)
    } catch (cause) {
      console.error(cause)
      if (!isGone) reports.onFail()
    }
  }
  void start()
  return () => {
    isGone = true
    remove()
  }
}
