import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { Icon } from '../../../parts/icon.tsx'
import { lazyPage } from '../../../parts/list/lazy-page.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { href, place, setQuery } from '../../../router.ts'
import { type Node, nodeName, nodes, nodesError, refreshNodes, useNodes } from '../../../state/mesh/nodes.ts'
import { t } from '../../../strings.ts'
import { frameTexts } from '../../../strings/mesh/frames.ts'
import { NO_WAYPOINTS, useTiles, useTopology, useTrack, useWaypoints } from '../data.ts'
import { useDrawing, useMap } from '../drawing.ts'
import { Legend } from '../legend/lazy-legend.ts'
import { MapBox } from '../map-box.tsx'
import { lineLimits } from '../switches.ts'
import { Frame } from './frame.tsx'
import { askedSettings, type FrameSettings } from './settings.ts'
import { Values } from './values.tsx'

const Pile = lazyPage(async () => (await import('../pile/pile.tsx')).Pile)

/** The map in a frame of another site. A pressed node says its most important values. */
export function MapFrame({ settings }: { settings?: FrameSettings }) {
  useNodes()
  const box = useRef<HTMLDivElement>(null)
  const tiles = useTiles()
  const pile = useSignal<readonly Node[] | null>(null)
  const { view, layers } = useMemo(() => settings ?? askedSettings(), [settings])
  const choose = (nodeId: string | null) => setQuery({ node: nodeId ?? '' })
  const { map, hasFailed } = useMap(box, tiles, view, { choose, ask: (found) => (pile.value = found), letGo: () => {} })
  const shown = (nodes.value ?? []).filter(({ position, isIgnored }) => position !== null && !isIgnored)
  const chosen = shown.find(({ nodeId }) => nodeId === place.value.query.get('node')) ?? null
  const track = useTrack(layers.tracks ? chosen : null)
  const topology = useTopology(chosen, layers, lineLimits.value.value)
  const waypoints = useWaypoints()
  useDrawing(map, {
    shown,
    chosen,
    track: track.spots,
    isChosenLoaded: topology.areLinksLoaded && track.isLoaded,
    ...topology,
    layers,
    waypoints: layers.waypoints ? waypoints : NO_WAYPOINTS,
  })
  return (
    <Frame
      title={t.map.title}
      about={nodes.value !== null && t.map.shown(shown.length, shown.length)}
      page={{ address: href('/map'), name: frameTexts.openMap }}
    >
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {hasFailed.value && <p class="map-note">{t.map.failed}</p>}
      <MapBox box={box} tiles={tiles}>
        {nodes.value !== null && shown.length === 0 && <p class="map-note">{t.map.none}</p>}
        <Legend hasLines={topology.links.length + topology.traces.length > 0} isBrief />
        {chosen !== null && <Chosen node={chosen} onClose={() => choose(null)} />}
      </MapBox>
      {pile.value !== null && <Pile pile={pile} onChoose={choose} />}
    </Frame>
  )
}

function Chosen({ node, onClose }: { node: Node; onClose(): void }) {
  const name = nodeName(node)
  return (
    <section class="frame-node" aria-label={name}>
      <header>
        <h2 dir="auto">{name}</h2>
        <button type="button" class="icon-button" aria-label={frameTexts.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <Values node={node} />
      <a href={href(`/nodes/${node.nodeId}`)} target="_blank" rel="noopener">
        {t.map.open}
      </a>
    </section>
  )
}
