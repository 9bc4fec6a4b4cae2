import { isEmbedded, isRecord, ownName } from '../../api.ts'

const KEY = ownName('map-view')

const DEFAULT_ZOOM = 11
export const MAX_ZOOM = 20

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

/** What `?center=47.1,8.2&zoom=11` asks for: degrees, and a zoom level from 0 to 20; null: nothing. */
export function askedView(query: URLSearchParams): MapView | null {
  const [lat, lng, more] = (query.get('center') ?? '').split(',').map(Number)
  if (lat === undefined || lng === undefined || more !== undefined) return null
  if (!(Math.abs(lat) <= 90 && Math.abs(lng) <= 180)) return null
  const zoom = Number(query.get('zoom') ?? DEFAULT_ZOOM)
  return { lat, lng, zoom: zoom >= 0 && zoom <= MAX_ZOOM ? zoom : DEFAULT_ZOOM }
}

export function rememberView(view: MapView): void {
  // A frame of another site begins as that site wants it.
  if (isEmbedded) return
  try {
    localStorage.setItem(KEY, JSON.stringify(view))
  } catch {
    // Storage is blocked: the view is lost when the page is left.
  }
}
