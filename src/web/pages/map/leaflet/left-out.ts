/** In place of parts of Leaflet's markers: ours have icons of their own, and nobody drags them. */
export { Icon as IconDefault } from 'leaflet/src/layer/marker/Icon.js'
export const MarkerDrag = null
