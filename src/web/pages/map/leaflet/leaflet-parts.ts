/**
 * The parts of Leaflet that the map uses. Leaflet comes as one bundle that can't be split, so `vite.config.ts` replaces
 * it with this module. Each import adds itself to Leaflet's Map, as the handlers do. The types are those of the whole.
 */
import { control as makeControl } from 'leaflet/src/control/Control.js'
import { scale } from 'leaflet/src/control/Control.Scale.js'
import { zoom } from 'leaflet/src/control/Control.Zoom.js'
import * as DomUtil from 'leaflet/src/dom/DomUtil.js'
import { Renderer } from 'leaflet/src/layer/vector/Renderer.js'
import 'leaflet/src/map/handler/Map.DoubleClickZoom.js'
import 'leaflet/src/map/handler/Map.Drag.js'
import 'leaflet/src/map/handler/Map.Keyboard.js'
import 'leaflet/src/map/handler/Map.ScrollWheelZoom.js'
import 'leaflet/src/map/handler/Map.TouchZoom.js'

export { DomUtil }
export { toLatLng as latLng } from 'leaflet/src/geo/LatLng.js'
export { toLatLngBounds as latLngBounds } from 'leaflet/src/geo/LatLngBounds.js'
export { toPoint as point } from 'leaflet/src/geometry/Point.js'
export { layerGroup } from 'leaflet/src/layer/LayerGroup.js'
export { divIcon } from 'leaflet/src/layer/marker/DivIcon.js'
export { marker } from 'leaflet/src/layer/marker/Marker.js'
export { createMap as map } from 'leaflet/src/map/Map.js'

export const control = Object.assign(makeControl, { zoom, scale })

type Edge = { readonly x: number; readonly y: number }
type Sheet = {
  readonly _map: { readonly _animatingZoom?: boolean }
  readonly _bounds?: { readonly min: Edge; readonly max: Edge }
  readonly _container: HTMLCanvasElement
  readonly _ctx: CanvasRenderingContext2D
  fire(event: 'update'): void
}

const { _update: update } = Renderer.prototype

/** Leaflet's canvas without its shapes: larger than the map's box, and cleared at each `update`. */
const Sheet = Renderer.extend({
  _initContainer(this: object) {
    const container = document.createElement('canvas')
    Object.assign(this, { _container: container, _ctx: container.getContext('2d') })
  },
  _destroyContainer(this: Sheet) {
    const { _container: container } = this
    // It may be shown again, so it is not forgotten.
    container.width = 0
    container.remove()
  },
  _update(this: Sheet) {
    const { _map: map, _container: container, _ctx: pen } = this
    const { _animatingZoom: isZooming } = map
    if (isZooming === true && '_bounds' in this) return
    update.call(this)
    const { _bounds: bounds } = this
    if (bounds === undefined) return
    const { min, max } = bounds
    const [width, height] = [max.x - min.x, max.y - min.y]
    const sharpness = devicePixelRatio > 1 ? 2 : 1
    DomUtil.setPosition(container, min)
    // Setting the size of a canvas clears it.
    container.width = sharpness * width
    container.height = sharpness * height
    container.style.width = `${width}px`
    container.style.height = `${height}px`
    pen.scale(sharpness, sharpness)
    pen.translate(-min.x, -min.y)
    this.fire('update')
  },
})

export const canvas = (options: object): object => new Sheet(options)
