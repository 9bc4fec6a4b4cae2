import { divIcon, layerGroup, type Map as LeafletMap, marker } from 'leaflet'
import type { Crowd } from './crowd.ts'
import { DEFAULT_ICON, type Waypoint } from '../waypoint.ts'

const SIZE_PX = 28

export type Waypoints = {
  show(waypoints: readonly Waypoint[]): void
  /** Keeps the place of their icons free. */
  takeRoom(crowd: Crowd): void
}

/** Places that people named: their icons, which take the focus like any button. */
export function createWaypoints(map: LeafletMap): Waypoints {
  const layer = layerGroup().addTo(map)
  let shown: readonly Waypoint[] = []
  return {
    takeRoom(crowd) {
      for (const { latitude, longitude } of shown) {
        const { x, y } = map.latLngToContainerPoint([latitude, longitude])
        crowd.take({ x: x - SIZE_PX / 2, y: y - SIZE_PX / 2, width: SIZE_PX, height: SIZE_PX })
      }
    },
    show(waypoints) {
      shown = waypoints
      layer.clearLayers()
      for (const { latitude, longitude, icon, name, description } of waypoints) {
        const text = [name, description].filter((part) => part !== '').join(': ')
        const words = element('sr-only', text)
        const face = document.createElement('div')
        face.append(element('', icon ?? DEFAULT_ICON), words)
        marker([latitude, longitude], {
          icon: divIcon({ className: 'waypoint', html: face, iconSize: [SIZE_PX, SIZE_PX] }),
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
