import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { type Node, nodes, nodesError, refreshNodes, useNodes } from '../../state/mesh/nodes.ts'
import { now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Failure, Problem } from '../../parts/notice.tsx'
import { lazyPage } from '../../parts/list/lazy-page.tsx'
import { Page } from '../../parts/page.tsx'
import './map.css'
import '../../parts/mesh/ways.css'
import { place, setQuery } from '../../router.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { isPointing } from '../../state/steady.ts'
import { isWall } from '../../state/wall.ts'
import { t } from '../../strings.ts'
import { coverageChoice, mayCover } from './cells/choice.ts'
import { NO_WAYPOINTS, useTiles, useTopology, useTrack, useWaypoints } from './data.ts'
import { useDrawing, useMap } from './drawing.ts'
import { passes, readFilter } from './filter.ts'
import { endFollowing, followed } from './following.ts'
import { Legend } from './legend/lazy-legend.ts'
import { MapBox } from './map-box.tsx'
import { MapPanel } from './panel/panel.tsx'
import { askedView, recallView } from './last-view.ts'
import type { Mark } from './layers/pointing.ts'
import { marks } from './marks/marks.ts'
import { useLinksOf } from './searched-links.ts'
import { shownLayers, shownLimits } from './switches.ts'

const LayersPanel = lazyPage(async () => (await import('./layers-panel.tsx')).LayersPanel)
const RulerPanel = lazyPage(async () => (await import('./ruler/ruler-panel.tsx')).RulerPanel)
const Coverage = lazyPage(async () => (await import('./cells/panel.tsx')).Coverage)
const PlaybackPanel = lazyPage(async () => (await import('./playback/panel.tsx')).PlaybackPanel)
const Marking = lazyPage(async () => (await import('./waypoints/marking.tsx')).Marking)
const Marked = lazyPage(async () => (await import('./marks/marked.tsx')).Marked)
const Question = lazyPage(async () => (await import('./background/question.tsx')).Question)
const Extras = lazyPage(async () => (await import('./extras.tsx')).Extras)
const Pile = lazyPage(async () => (await import('./pile/pile.tsx')).Pile)

/** Where the nodes are, beside a list of them with the same information in words. */
export function MapPage() {
  useNodes()
  const box = useRef<HTMLDivElement>(null)
  const tiles = useTiles()
  const pile = useSignal<readonly Node[] | null>(null)
  const isChoosing = useSignal(false)
  const isMeasuring = useSignal(false)
  const isPlaying = useSignal(mayPlay() && place.peek().query.get('at') !== null)
  const mark = useSignal<Mark | 'middle' | null>(null)
  const choose = (nodeId: string | null) => setQuery({ node: nodeId ?? '', trace: '' })
  const { map, hasFailed } = useMap(box, tiles, askedView(place.peek().query) ?? recallView(), {
    choose,
    ask: (found) => (pile.value = found),
    letGo: endFollowing,
    mark: mayMark() ? (pressed) => (mark.value = pressed) : null,
  })
  const { query } = place.value
  const filter = readFilter(query)
  const layers = shownLayers()
  const placed = (nodes.value ?? []).filter(({ position, isIgnored }) => position !== null && !isIgnored)
  const chosen = nodes.value?.find(({ nodeId }) => nodeId === query.get('node')) ?? null
  const track = useTrack(layers.tracks ? chosen : null)
  const limits = shownLimits(query)
  const topology = useTopology(
    chosen,
    layers,
    useMemo(() => limits, [JSON.stringify(limits)]),
  )
  const found = useLinksOf(topology.links, query.get('links') === 'ends' ? filter.q : '')
  const ids = query.get('mark')
  const marked = ids === null ? null : marks.value
  const links = marked?.links ?? found.links
  // The selected node stays on the map, regardless of the filter, and so do the other ends of links that are searched.
  const isShown = (node: Node) =>
    node.nodeId === chosen?.nodeId ||
    marked?.nodeNums.has(node.nodeNum) === true ||
    found.ends.has(node.nodeNum) ||
    passes(node, filter, now.peek())
  const shown = placed.filter(isShown)
  const waypoints = useWaypoints()
  const by = coverageChoice.value.value
  useEffect(() => map.value?.follow(followed.value), [map.value, followed.value])
  const drawn = useStill(placed, query.get('node')).filter(isShown)
  useDrawing(map, {
    shown: drawn,
    chosen,
    track: track.spots,
    isChosenLoaded: topology.areLinksLoaded && track.isLoaded,
    ...topology,
    links,
    marks: marked,
    layers,
    waypoints: layers.waypoints ? waypoints : NO_WAYPOINTS,
    ...(isPlaying.value && NOW_HIDDEN),
  })
  return (
    <Page
      title={t.map.title}
      fill
      actions={<Actions {...{ isChoosing, isMeasuring, isPlaying, mark }} fit={() => map.value?.fit()} />}
    >
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {hasFailed.value && <Problem>{t.map.failed}</Problem>}
      <div class="map-page">
        <MapBox box={box} tiles={tiles}>
          {nodes.value !== null && placed.length === 0 && (
            <div class="map-note">
              <p>{t.map.none}</p>
              <ConnectHelp />
            </div>
          )}
          <Legend hasLines={links.length + topology.traces.length > 0} />
          {ids !== null && <Marked ids={ids} between={query.get('between') !== null} />}
          {tiles.isUnset.value && !isWall.value && !isPlaying.value && ids === null && (
            <Question onAnswer={tiles.reload} />
          )}
          {isChoosing.value && <LayersPanel isOpen={isChoosing} hasTiles={tiles.wanted.value !== null} />}
          {isMeasuring.value && map.value !== null && (
            <RulerPanel map={map.value} onClose={() => (isMeasuring.value = false)} />
          )}
          {map.value !== null && <Extras parts={map.value.parts} layers={layers} chosen={chosen} />}
          {by !== '' && mayCover() && map.value !== null && <Coverage map={map.value} by={by} />}
          {isPlaying.value && map.value !== null && nodes.value !== null && (
            <PlaybackPanel map={map.value} nodes={shown} onClose={() => (isPlaying.value = false)} />
          )}
          {mark.value !== null && map.value !== null && <Marking mark={mark} map={map.value} />}
        </MapBox>
        <MapPanel
          {...topology}
          links={links}
          shown={shown}
          chosen={chosen}
          waypoints={waypoints}
          total={placed.length}
          filter={filter}
          trackLength={track.spots.length}
          onPlace={(at) => map.value?.goTo(at)}
        />
      </div>
      {pile.value !== null && <Pile pile={pile} onChoose={choose} />}
    </Page>
  )
}

/** The nodes at the time when the user began to point at the map, so that nothing moves under the pointer. */
function useStill(placed: readonly Node[], chosen: string | null): readonly Node[] {
  const isHeld = isPointing.value
  const last = useRef(placed)
  const isKnown = chosen === null || last.current.some(({ nodeId }) => nodeId === chosen)
  if (!isHeld || followed.value !== null || last.current.length === 0 || !isKnown) last.current = placed
  return last.current
}

/** What is not drawn while the past is. */
const NOW_HIDDEN = {
  chosen: null,
  track: [],
  links: [],
  traces: [],
  route: null,
  layers: { nodes: false, precision: false, labels: false, clusters: false },
}

/** Whether the past can be shown: as the log of packets, not to people without an account. */
const mayPlay = () => !isAnonymous.value

/** Whether waypoints can be shared. */
const mayMark = () => can('messages', 'write') && has('radio')

type ActionProps = Record<'isChoosing' | 'isMeasuring' | 'isPlaying', Signal<boolean>> & {
  mark: Signal<Mark | 'middle' | null>
  fit: () => void
}

function Actions({ isChoosing, isMeasuring, isPlaying, mark, fit }: ActionProps) {
  return (
    <>
      <button
        type="button"
        class="button"
        aria-expanded={isChoosing.value}
        onClick={() => (isChoosing.value = !isChoosing.value)}
      >
        {t.map.layers}
      </button>
      <button
        type="button"
        class="button"
        aria-pressed={isMeasuring.value}
        onClick={() => (isMeasuring.value = !isMeasuring.value)}
      >
        {t.map.measure}
      </button>
      {mayPlay() && (
        <button
          type="button"
          class="button"
          aria-pressed={isPlaying.value}
          onClick={() => (isPlaying.value = !isPlaying.value)}
        >
          {t.map.playback}
        </button>
      )}
      {mayMark() && (
        <button type="button" class="button" onClick={() => (mark.value = 'middle')}>
          {t.map.newWaypoint}
        </button>
      )}
      <button type="button" class="button" onClick={fit}>
        {t.map.fit}
      </button>
    </>
  )
}
