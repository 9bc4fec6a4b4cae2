import { divIcon, layerGroup, type Map as LeafletMap, marker } from 'leaflet'
import { DEFAULT_ICON, type Waypoint } from './map-waypoint.ts'

/** Places that people named: their icons, which take the focus like any button. */
export function createWaypoints(map: LeafletMap): { show(waypoints: readonly Waypoint[]): void } {
  const layer = layerGroup().addTo(map)
  return {
    show(waypoints) {
      layer.clearLayers()
      for (const { latitude, longitude, icon, name, description } of waypoints) {
        const text = [name, description].filter((part) => part !== '').join(': ')
        const words = element('sr-only', text)
        const face = document.createElement('div')
        face.append(element('', icon ?? DEFAULT_ICON), words)
        marker([latitude, longitude], {
          icon: divIcon({ className: 'waypoint', html: face, iconSize: [28, 28] }),
          title: name,
        })
          .bindTooltip(element('', text), { direction: 'top', offset: [0, -12] })
          .addTo(layer)
      }
    },
  }
}

// An element, not markup: Leaflet would read it out of a name.
function element(className: string, text: string): HTMLElement {
  const found = document.createElement('span')
  found.className = className
  found.textContent = text
  return found
}
