import { divIcon, layerGroup, type Map as LeafletMap, marker } from 'leaflet'
import { DEFAULT_ICON, type Waypoint } from './map-waypoint.ts'

/** Places that people named: their icons, which take the focus like any button. */
export function createWaypoints(map: LeafletMap): { show(waypoints: readonly Waypoint[]): void } {
  const layer = layerGroup().addTo(map)
  return {
    show(waypoints) {
      layer.clearLayers()
      for (const { latitude, longitude, icon, name, description } of waypoints) {
        const face = document.createElement('span')
        face.textContent = icon ?? DEFAULT_ICON
        const words = document.createElement('span')
        words.textContent = [name, description].filter((text) => text !== '').join(': ')
        marker([latitude, longitude], {
          icon: divIcon({ className: 'waypoint', html: face, iconSize: [28, 28] }),
          title: name,
          alt: words.textContent,
        })
          .bindTooltip(words, { direction: 'top', offset: [0, -12] })
          .addTo(layer)
      }
    },
  }
}
