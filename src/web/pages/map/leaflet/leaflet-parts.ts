/**
 * The parts of Leaflet that the map uses. Leaflet comes as one bundle that can't be split, so `vite.config.ts` replaces
 * it with this module. Each import adds itself to Leaflet's Map, as the handlers do. The types are those of the whole.
 */
import { control as makeControl } from 'leaflet/src/control/Control.js'
import { scale } from 'leaflet/src/control/Control.Scale.js'
import { zoom } from 'leaflet/src/control/Control.Zoom.js'
import { Map } from 'leaflet/src/map/Map.js'
import 'leaflet/src/layer/Tooltip.js'
import { Canvas } from 'leaflet/src/layer/vector/Canvas.js'
import 'leaflet/src/map/handler/Map.BoxZoom.js'
import 'leaflet/src/map/handler/Map.DoubleClickZoom.js'
import 'leaflet/src/map/handler/Map.Drag.js'
import 'leaflet/src/map/handler/Map.Keyboard.js'
import 'leaflet/src/map/handler/Map.ScrollWheelZoom.js'
import 'leaflet/src/map/handler/Map.TapHold.js'
import 'leaflet/src/map/handler/Map.TouchZoom.js'

export * as DomUtil from 'leaflet/src/dom/DomUtil.js'
export { toLatLng as latLng } from 'leaflet/src/geo/LatLng.js'
export { toLatLngBounds as latLngBounds } from 'leaflet/src/geo/LatLngBounds.js'
export { toPoint as point } from 'leaflet/src/geometry/Point.js'
export { featureGroup } from 'leaflet/src/layer/FeatureGroup.js'
export { layerGroup } from 'leaflet/src/layer/LayerGroup.js'
export { divIcon } from 'leaflet/src/layer/marker/DivIcon.js'
export { marker } from 'leaflet/src/layer/marker/Marker.js'
export { GridLayer, gridLayer } from 'leaflet/src/layer/tile/GridLayer.js'
export { tileLayer } from 'leaflet/src/layer/tile/TileLayer.js'
export { canvas } from 'leaflet/src/layer/vector/Canvas.js'
export { circle } from 'leaflet/src/layer/vector/Circle.js'
export { circleMarker } from 'leaflet/src/layer/vector/CircleMarker.js'
export { polyline } from 'leaflet/src/layer/vector/Polyline.js'
export { createMap as map } from 'leaflet/src/map/Map.js'

export const control = Object.assign(makeControl, { zoom, scale })

// Leaflet's own choice of a renderer includes SVG, which is not used here.
Map.include({
  getRenderer(this: LayerMap, { options }: { options: Drawn }) {
    const renderer = options.renderer ?? this.options.renderer
    if (renderer !== undefined && !this.hasLayer(renderer)) this.addLayer(renderer)
    return renderer
  },
})

// A frame that was asked for before the map was left finds nothing to draw on.
const { _redraw: redraw } = Canvas.prototype
Canvas.include({
  _redraw(this: object) {
    if ('_ctx' in this) redraw.call(this)
  },
})

type Drawn = { readonly renderer?: object }
type LayerMap = { readonly options: Drawn; hasLayer(layer: object): boolean; addLayer(layer: object): void }
