/** Replaces parts of Leaflet's markers: ours have their own icons and cannot be dragged. */
export { Icon as IconDefault } from 'leaflet/src/layer/marker/Icon.js'
export const MarkerDrag = null
