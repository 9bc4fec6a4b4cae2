import { divIcon, type LatLng, type Map as LeafletMap, marker, type Marker } from 'leaflet'

export type Tip = {
  show(at: LatLng, text: string): void
  hide(): void
}

/** A few words beside what the mouse points at. */
export function createTip(map: LeafletMap): Tip {
  let drawn: Marker | null = null
  let last = ''
  const hide = () => {
    drawn?.remove()
    drawn = null
    last = ''
  }
  return {
    hide,
    show(at, text) {
      const key = `${at.lat} ${at.lng} ${text}`
      if (key === last) return
      hide()
      last = key
      // An element instead of text, because Leaflet would read markup in a node's name.
      const words = document.createElement('bdi')
      words.textContent = text
      const icon = divIcon({ className: 'map-tip', html: words, iconSize: [0, 0] })
      drawn = marker(at, { icon, interactive: false, keyboard: false, pane: 'tooltipPane' }).addTo(map)
    },
  }
}
