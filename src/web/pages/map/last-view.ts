import { isRecord, ownName } from '../../api.ts'

const KEY = ownName('map-view')

export type MapView = { readonly lat: number; readonly lng: number; readonly zoom: number }

/** The last view of the map in this browser; null: there is none. */
export function recallView(): MapView | null {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null')
    if (!isRecord(stored)) return null
    const { lat, lng, zoom } = stored
    const isView = [lat, lng, zoom].every((value) => typeof value === 'number' && Number.isFinite(value))
    return isView ? { lat: Number(lat), lng: Number(lng), zoom: Number(zoom) } : null
  } catch {
    // Storage is blocked, or contains something else. The map then shows all nodes.
    return null
  }
}

export function rememberView(view: MapView): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(view))
  } catch {
    // Storage is blocked: the view is lost when the page is left.
  }
}
