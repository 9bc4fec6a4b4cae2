import { useMemo, useRef } from 'preact/hooks'
import { api, ask } from '../../../api.ts'
import { Empty, Failure } from '../../../parts/notice.tsx'
import { href } from '../../../router.ts'
import { useLoad } from '../../../state/load.ts'
import { type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { t } from '../../../strings.ts'
import { frameTexts } from '../../../strings/mesh/frames.ts'
import { NO_WAYPOINTS, useTiles, useTrack } from '../data.ts'
import { useDrawing, useMap } from '../drawing.ts'
import { Legend } from '../legend/lazy-legend.ts'
import { MapBox } from '../map-box.tsx'
import { Frame } from './frame.tsx'
import { askedSettings } from './settings.ts'
import { Values } from './values.tsx'

const POLL_MS = 10_000

/** One node in a frame of another site: where it is, and its most important values. */
export function NodeFrame({ id }: { id: string }) {
  const { data, error, reload } = useLoad(() => ask(api.nodes[':id'].$get({ param: { id } })), [id], POLL_MS, ['node'])
  const node = data.value
  const name = node === null ? id : nodeName(node)
  const page = { address: href(`/nodes/${id}`), name: frameTexts.openNode(name) }
  const isGone = error.value?.code === 'node_not_found'
  return (
    <Frame title={name} page={page}>
      {isGone ? (
        <Empty icon="nodes">
          <p>{frameTexts.gone}</p>
        </Empty>
      ) : (
        <Failure error={error.value} retry={reload} />
      )}
      {node !== null && !isGone && (
        <div class="frame-of-node">
          <div class="frame-values">
            <Values node={node} />
            {node.position === null && <p class="faint">{t.nodes.noPosition}</p>}
          </div>
          {node.position !== null && <Place node={node} />}
        </div>
      )}
    </Frame>
  )
}

const NO_LINES = { links: [], traces: [], route: null } as const

function Place({ node }: { node: Node }) {
  const box = useRef<HTMLDivElement>(null)
  const tiles = useTiles()
  const { view, layers } = useMemo(() => askedSettings(), [])
  // There is nothing to choose.
  const { map, hasFailed } = useMap(box, tiles, view, { choose: () => {}, ask: () => {}, letGo: () => {} })
  const track = useTrack(layers.tracks ? node : null)
  useDrawing(map, {
    shown: [node],
    chosen: node,
    track: track.spots,
    isChosenLoaded: view === null && track.isLoaded,
    ...NO_LINES,
    layers,
    waypoints: NO_WAYPOINTS,
  })
  return (
    <MapBox box={box} tiles={tiles}>
      {hasFailed.value && <p class="map-note">{t.map.failed}</p>}
      <Legend hasLines={false} isBrief />
    </MapBox>
  )
}
