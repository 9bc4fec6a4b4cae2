import { useEffect, useRef } from 'preact/hooks'
import '../../map/map.css'
import { href, navigate } from '../../../router.ts'
import { type Node, nodeByNum } from '../../../state/mesh/nodes.ts'
import { t } from '../../../strings.ts'
import { NO_WAYPOINTS, useTiles } from '../../map/data.ts'
import { useDrawing, useMap } from '../../map/drawing.ts'
import type { Layers } from '../../map/switches.ts'
import type { Neighbor } from '../../../state/mesh/neighbors.ts'

const LAYERS: Layers = {
  nodes: true,
  labels: true,
  clusters: false,
  precision: true,
  waypoints: false,
  tracks: false,
  links: true,
  routes: false,
  heard: false,
  broker: false,
  live: false,
}
const NONE: readonly never[] = []

/** A small map of the node and of those that it hears or that hear it. The neighbours below it say the same in words. */
export function NodePlace({ node, links }: { node: Node; links: readonly Neighbor[] | null }) {
  const box = useRef<HTMLDivElement>(null)
  const tiles = useTiles()
  const open = (nodeId: string | null) => {
    if (nodeId !== null && nodeId !== node.nodeId) navigate(`/nodes/${nodeId}`)
  }
  const { map, hasFailed } = useMap(box, tiles, null, { choose: open, ask: () => {}, letGo: () => {} }, true)
  const around = new Set((links ?? []).flatMap(({ nodeNum, neighborNum }) => [nodeNum, neighborNum]))
  around.delete(node.nodeNum)
  const others = [...around].flatMap((nodeNum) => nodeByNum(nodeNum) ?? []).filter(({ position }) => position !== null)
  useDrawing(map, {
    shown: [node, ...others],
    chosen: node,
    track: NONE,
    isChosenLoaded: true,
    links: links ?? NONE,
    traces: NONE,
    route: null,
    waypoints: NO_WAYPOINTS,
    layers: LAYERS,
  })
  // Its neighbours are loaded after it.
  const places = others.map(({ nodeNum }) => nodeNum).join(' ')
  useEffect(() => {
    if (places !== '') map.value?.fit()
  }, [map.value, places])
  return (
    <section class="card node-place">
      <div class="card-head">
        <h2>{t.map.title}</h2>
        <a class="button small" href={href(`/map?node=${node.nodeId}`)}>
          {t.nodes.showOnMap}
        </a>
      </div>
      <div class="map-box">
        <div class="map" ref={box} role="region" aria-label={t.map.label} />
        {hasFailed.value && <p class="map-note">{t.map.failed}</p>}
        {tiles.attribution.value !== null && <p class="map-attribution">{tiles.attribution.value}</p>}
      </div>
    </section>
  )
}
