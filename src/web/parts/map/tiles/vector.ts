import { DomUtil, type GridLayer as Layer } from 'leaflet'
import { leafletLayer } from 'protomaps-leaflet'
import { GridLayer } from '../../../pages/map/leaflet/tile-parts.ts'
import { openArchive, readAttribution, type Tiles } from './archive.ts'

// The library looks for Leaflet where a script tag would have put it.
Object.assign(globalThis, { L: { DomUtil, GridLayer } })

/** Vector tiles of a map file in the layout of Protomaps (docs.protomaps.com/basemaps/layers), drawn by the browser. */
export async function vectorLayer(
  tiles: Extract<Tiles, { kind: 'archive' }>,
  isDark: boolean,
  onAttribution: (text: string) => void,
): Promise<Layer> {
  const archive = openArchive()
  const says = await readAttribution(archive)
  if (says !== null) onAttribution(says)
  const layer: unknown = leafletLayer({
    url: archive,
    flavor: isDark ? 'dark' : 'light',
    lang: 'en',
    maxDataZoom: tiles.maxZoom,
    maxZoom: 24,
  })
  if (!(layer instanceof GridLayer)) throw new Error('not a layer')
  return layer
}
