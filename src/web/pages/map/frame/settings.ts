import { place } from '../../../router.ts'
import { can } from '../../../state/session.ts'
import { askedView, type MapView } from '../last-view.ts'
import type { LayerName, Layers } from '../switches.ts'

/** How a map in a frame of another site looks. */
export type FrameSettings = {
  /** What it shows first; null: all nodes. */
  readonly view: MapView | null
  readonly layers: Layers
}

/** Without a choice of the site around the frame: everything but lines and tracks. */
const FIRST: readonly string[] = ['labels', 'clusters', 'precision', 'waypoints']

/**
 * What the address of a frame asks for: `?center=47.1,8.2&zoom=11&layers=nodes,labels,links`. The layers are those of
 * `switches.ts`; nodes are always shown, and lines only if public access shows them.
 */
export function askedSettings(query: URLSearchParams = place.value.query): FrameSettings {
  const wanted = new Set(query.get('layers')?.split(',') ?? FIRST)
  if (!can('info', 'read')) for (const lines of ['links', 'routes']) wanted.delete(lines)
  const has = (name: LayerName) => wanted.has(name)
  const lines = { links: has('links'), routes: has('routes'), heard: false, broker: false, live: false }
  const marks = { waypoints: has('waypoints'), tracks: has('tracks'), precision: has('precision') }
  return {
    view: askedView(query),
    layers: { nodes: true, labels: has('labels'), clusters: has('clusters'), ...marks, ...lines },
  }
}
