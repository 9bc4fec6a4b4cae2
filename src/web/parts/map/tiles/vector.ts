import { DomUtil, latLngBounds, type GridLayer as Layer } from 'leaflet'
import { BLACK, DARK, type Flavor, LIGHT, WHITE } from '@protomaps/basemaps'
import { labelRules, leafletLayer, paintRules } from 'protomaps-leaflet'
import { GridLayer } from './leaflet-tiles.ts'
import { apiLanguage } from '../../../language.ts'
import { type Archive, openArchive, readAttribution } from './archive.ts'
import { firstZoom } from './cover.ts'

// The library looks for Leaflet where a script tag would have put it.
Object.assign(globalThis, { L: { DomUtil, GridLayer } })

/** Vector tiles of a map file in the layout of Protomaps (docs.protomaps.com/basemaps/layers), drawn by the browser. */
export async function vectorLayer(
  tiles: Archive,
  isDark: boolean,
  onAttribution: (text: string) => void,
): Promise<Layer> {
  const archive = openArchive(tiles)
  const says = await readAttribution(archive)
  if (says !== null) onAttribution(says)
  const [west, south, east, north] = tiles.bounds
  const flavour = flavourOf(isDark)
  const layer: unknown = leafletLayer({
    url: archive,
    paintRules: paintRules(flavour),
    labelRules: labelRules(flavour, apiLanguage.slice(0, 2)),
    backgroundColor: flavour.background,
    maxDataZoom: tiles.maxZoom,
    minZoom: firstZoom(tiles),
    maxZoom: 24,
    bounds: latLngBounds([south, west], [north, east]),
  })
  if (!(layer instanceof GridLayer)) throw new Error('not a layer')
  return layer
}

/** The colours of the library, with land and sea like those of the built-in map around the file. */
function flavourOf(isDark: boolean): Flavor {
  // For readers who want more contrast.
  if (matchMedia('(prefers-contrast: more), (forced-colors: active)').matches) return isDark ? BLACK : WHITE
  return isDark
    ? { ...DARK, background: '#10181b', water: '#10181b', earth: '#1e282c' }
    : { ...LIGHT, background: '#c3d9e3', water: '#c3d9e3', earth: '#eeece8' }
}
