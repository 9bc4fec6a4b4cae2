import { divIcon, latLng, layerGroup, type Map as LeafletMap, marker } from 'leaflet'
import { type Occupied, enlargement } from '../../../parts/map/occupied.ts'
import type { Tip } from './tip.ts'
import { DEFAULT_ICON, type Waypoint } from '../waypoints/waypoint.ts'

const SIZE_PX = 28

export type Waypoints = {
  show(waypoints: readonly Waypoint[]): void
  /** Keeps the space of their icons free. */
  takeRoom(occupied: Occupied): void
}

/** Places with names, shown as icons that take the focus like any button. */
export function createWaypoints(map: LeafletMap, tip: Tip): Waypoints {
  // Below the nodes, which they must not hide.
  map.createPane('waypoints').style.zIndex = '395'
  const layer = layerGroup().addTo(map)
  let shown: readonly Waypoint[] = []
  return {
    takeRoom(occupied) {
      const size = SIZE_PX * enlargement()
      for (const { latitude, longitude } of shown) {
        const { x, y } = map.latLngToContainerPoint([latitude, longitude])
        occupied.take({ x: x - size / 2, y: y - size / 2, width: size, height: size })
      }
    },
    show(waypoints) {
      // A pin keeps the focus.
      if (JSON.stringify(waypoints) === JSON.stringify(shown)) return
      shown = waypoints
      layer.clearLayers()
      const size = SIZE_PX * enlargement()
      for (const { latitude, longitude, icon, name, description } of waypoints) {
        const text = [name, description].filter((part) => part !== '').join(': ')
        const words = element('sr-only', text)
        const face = document.createElement('div')
        face.append(element('', icon ?? DEFAULT_ICON), words)
        const at = latLng(latitude, longitude)
        const pin = marker(at, {
          pane: 'waypoints',
          // A click belongs to the node above it.
          bubblingMouseEvents: true,
          icon: divIcon({ className: 'waypoint', html: face, iconSize: [size, size] }),
          title: name,
        }).addTo(layer)
        for (const event of ['mouseenter', 'focus']) pin.getElement()?.addEventListener(event, () => tip.show(at, text))
        for (const event of ['mouseleave', 'blur']) pin.getElement()?.addEventListener(event, tip.hide)
      }
    },
  }
}

// An element instead of text, because Leaflet would read markup in a name.
function element(className: string, text: string): HTMLElement {
  const found = document.createElement('span')
  found.className = className
  found.textContent = text
  return found
}
