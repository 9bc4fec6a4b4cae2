import type { GridLayer, Map as LeafletMap } from 'leaflet'
import { tileLayer } from './leaflet-tiles.ts'
import type { Archive, Tiles } from './archive.ts'

export type TileReports = {
  /** Tiles are unavailable: no more are requested. */
  onFail(): void
  /** Reports the attribution from the file of the tiles. */
  onAttribution(text: string): void
}

/** Failures in a row after which no more tiles are requested. */
const MAX_FAILURES = 4

/** Puts tiles under the nodes; returns a function that removes them. */
export function showTiles(map: LeafletMap, tiles: Tiles, isDark: boolean, reports: TileReports): () => void {
  let isGone = false
  let shown: GridLayer | null = null
  const remove = () => {
    isGone = true
    shown?.remove()
  }
  const fail = () => {
    if (isGone) return
    remove()
    reports.onFail()
  }
  const put = (layer: GridLayer) => {
    if (isGone) return
    shown = layer
    watch(layer, fail)
    layer.addTo(map)
  }
  if (tiles.kind === 'url') put(fromHost(tiles, isDark))
  else {
    loadArchive(tiles, isDark, reports).then(put, (cause: unknown) => {
      console.error(cause)
      fail()
    })
  }
  return remove
}

function fromHost({ url, darkUrl, maxZoom }: Extract<Tiles, { kind: 'url' }>, isDark: boolean): GridLayer {
  // Tile servers want to know which site asks. They get the origin only, and no other server gets it.
  return tileLayer(isDark ? (darkUrl ?? url) : url, { maxNativeZoom: maxZoom, maxZoom: 24, referrerPolicy: 'origin' })
}

// The reader of map files is large, and only needed for such a file.
async function loadArchive(tiles: Archive, isDark: boolean, { onAttribution }: TileReports): Promise<GridLayer> {
  const { isVector, rasterLayer } = await import('./raster.ts')
  if (await isVector(tiles)) {
    const { vectorLayer } = await import('./vector.ts')
    return vectorLayer(tiles, isDark, onAttribution)
  }
  return rasterLayer(tiles, onAttribution)
}

/** Some tiles may be missing; if all are, the server or the file is unreachable. */
function watch(layer: GridLayer, fail: () => void): void {
  let failures = 0
  layer.on('tileload', () => (failures = 0))
  layer.on('tileerror', () => {
    failures += 1
    if (failures >= MAX_FAILURES) fail()
  })
}
