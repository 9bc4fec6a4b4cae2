import { type Signal, useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { type Node, nodes } from '../../../state/mesh.ts'
import { now } from '../../../parts/age.tsx'
import { useLazyDrawing } from '../../../parts/lazy-drawing.ts'
import { place, setQuery } from '../../../router.ts'
import type { UsedTiles } from '../data.ts'
import type { Link, Spot } from './lines.ts'
import type { MeshMap } from '../view.ts'
import type { Waypoint } from '../waypoint.ts'
import { type Traceroute, waysOf } from '../../topology/traceroute.ts'

/** More signals at once would hide the nodes. */
const MOST_NUMBERS = 12

export type MapContent = {
  readonly shown: readonly Node[]
  readonly chosen: Node | null
  readonly track: readonly Spot[]
  readonly links: readonly Link[]
  readonly traces: readonly Traceroute[]
  readonly waypoints: readonly Waypoint[]
}

/** Creates the map when the page is ready; its drawing code is loaded on first use. */
export function useMap(box: { readonly current: HTMLDivElement | null }, tiles: UsedTiles) {
  const { drawing: map, hasFailed } = useLazyDrawing(box, async () => {
    const { createMap } = await import('../view.ts')
    return (element) => createMap(element, (nodeId) => setQuery({ node: nodeId ?? '', trace: '' }), tiles.reports)
  })
  const { wanted, turn } = tiles
  useEffect(() => map.value?.showTiles(wanted.value), [map.value, wanted.value, turn.value])
  return { map, hasFailed }
}

/** Redraws each part when it has changed. */
export function useDrawing(map: Signal<MeshMap | null>, content: MapContent): void {
  const { shown, chosen, track, links, traces, waypoints } = content
  // Nodes grow old also while nothing is heard.
  const minute = useComputed(() => Math.floor(now.value / 60_000)).value
  const shownKey = `${shown.length} ${minute} ${place.value.query.toString()}`
  useEffect(() => map.value?.showNodes(shown, now.peek(), chosen?.nodeNum ?? null), [map.value, nodes.value, shownKey])
  useEffect(() => map.value?.showTrack(track), [map.value, track])
  useEffect(
    () => map.value?.showLinks(links, chosen !== null || links.length <= MOST_NUMBERS),
    [map.value, nodes.value, links, shownKey],
  )
  useEffect(() => map.value?.showWays(traces.flatMap(waysOf)), [map.value, nodes.value, traces, shownKey])
  useEffect(() => map.value?.showWaypoints(waypoints), [map.value, waypoints])
}
