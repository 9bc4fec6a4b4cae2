import { type Signal, useComputed } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Node } from '../../state/mesh/nodes.ts'
import { now } from '../../parts/age.tsx'
import { useLazyDrawing } from '../../parts/lazy-drawing.ts'
import { theme } from '../../theme.ts'
import type { UsedTiles } from './data.ts'
import type { Link, Spot } from './layers/lines.ts'
import type { Marks } from './marks/marks.ts'
import type { MapView } from './last-view.ts'
import type { Choice } from './layers/pointing.ts'
import { shownScale } from './colouring/chosen-scale.ts'
import { BY_AGE } from './colouring/colouring.ts'
import { backgroundChoice, type Layers, limitWay, lineLimits } from './switches.ts'
import type { Focus, MeshMap } from './view.ts'
import type { Waypoint } from './waypoints/waypoint.ts'
import { type Traceroute, waysOf } from '../../parts/mesh/traceroute.ts'

/** The maximum number of signals shown at once; more would hide the nodes. */
const MAX_NUMBERS = 12

export type MapContent = {
  readonly shown: readonly Node[]
  readonly chosen: Node | null
  readonly track: readonly Spot[]
  /** Whether everything about the chosen node is here, so that it can be brought into sight. */
  readonly isChosenLoaded: boolean
  readonly links: readonly Link[]
  readonly traces: readonly Traceroute[]
  /** The only line, which the user asked for. */
  readonly route: Traceroute | null
  readonly waypoints: readonly Waypoint[]
  /** What the address marks. */
  readonly marks?: Marks | null
  readonly layers: Pick<Layers, 'nodes' | 'precision' | 'clusters' | 'labels'>
}

/** Creates the map when the page is ready; its drawing code is loaded on first use. `isInset`: as in `createMap`. */
export function useMap(
  box: { readonly current: HTMLDivElement | null },
  tiles: UsedTiles,
  start: MapView | null,
  choice: Choice,
  isInset = false,
) {
  const { drawing: map, hasFailed } = useLazyDrawing(box, async () => {
    const { createMap } = await import('./view.ts')
    return (element) => createMap(element, { start, isInset }, choice, tiles.reports)
  })
  const { wanted, turn, hasWorld } = tiles
  const background = backgroundChoice.value.value
  useEffect(
    () => map.value?.showTiles(wanted.value, background, hasWorld.value),
    [map.value, wanted.value, turn.value, background, hasWorld.value],
  )
  useEffect(() => map.value?.recolour(), [map.value, theme.value])
  return { map, hasFailed }
}

/** Redraws each part when it has changed. */
export function useDrawing(map: Signal<MeshMap | null>, content: MapContent): void {
  const { shown, chosen, track, isChosenLoaded, links, traces, route, waypoints, marks = null } = content
  const { nodes: dots, precision, clusters, labels } = content.layers
  // Nodes also age while nothing is heard.
  const minute = useComputed(() => Math.floor(now.value / 60_000)).value
  const nodes = useSame(shown)
  const chosenNum = chosen?.nodeNum ?? null
  const onRoute = useMemo(() => (route === null ? null : nodesOf(route)), [route])
  const bright = onRoute ?? marks?.nodeNums ?? null
  const kept = useMemo(() => {
    const neighbours = chosenNum === null ? [] : links.flatMap(({ nodeNum, neighborNum }) => [nodeNum, neighborNum])
    return new Set([...neighbours, ...(bright ?? [])])
  }, [links, chosenNum, bright])
  const limits = lineLimits.value.value
  const colouring = shownScale() ?? BY_AGE
  useEffect(() => {
    const focus: Focus | null =
      route !== null && onRoute !== null
        ? { key: `route ${route.id}`, nodeNums: onRoute, track: [] }
        : chosenNum !== null && isChosenLoaded
          ? { key: `node ${chosenNum}`, nodeNums: new Set([chosenNum, ...kept]), track }
          : marks === null
            ? null
            : { key: marks.key, nodeNums: marks.nodeNums, track: [] }
    const all = {
      placed: nodes,
      now: now.peek(),
      chosen: chosenNum,
      kept,
      bright,
      look: { dots, precision, clusters, colouring },
    }
    map.value?.showNodes(all, labels, focus)
  }, [
    map.value,
    nodes,
    minute,
    chosenNum,
    isChosenLoaded,
    kept,
    onRoute,
    marks,
    dots,
    precision,
    clusters,
    colouring,
    labels,
  ])
  useEffect(() => {
    const ways = traces.flatMap(waysOf).flatMap((way) => (route === null ? limitWay(way, limits) : [way]))
    const areLinksNumbered = chosenNum !== null || links.length <= MAX_NUMBERS
    map.value?.showLines({ links, areLinksNumbered, ways, isRoute: route !== null })
  }, [map.value, links, traces, route, limits, chosenNum])
  useEffect(() => map.value?.showTrack(track), [map.value, track])
  useEffect(() => map.value?.showWaypoints(waypoints), [map.value, waypoints])
}

/** The nodes of both directions of a traceroute. */
function nodesOf(route: Traceroute): ReadonlySet<number> {
  return new Set(waysOf(route).flatMap(({ nodes }) => nodes.flatMap((nodeNum) => nodeNum ?? [])))
}

/** The previous list, if its elements are the same. */
export function useSame<T>(list: readonly T[]): readonly T[] {
  const last = useRef(list)
  const isSame = last.current.length === list.length && list.every((item, index) => item === last.current[index])
  if (!isSame) last.current = list
  return last.current
}
