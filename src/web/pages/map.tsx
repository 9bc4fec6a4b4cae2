import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { nodes, nodesError, refreshNodes, useNodes } from '../mesh.ts'
import { now } from '../parts/age.tsx'
import { Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import '../styles/map.css'
import { place, setQuery } from '../router.ts'
import { can } from '../session.ts'
import { t } from '../strings.ts'
import { passes, readFilter } from './map-filter.ts'
import { MapPanel } from './map-panel.tsx'
import type { MeshMap } from './map-view.ts'
import { useTiles, useTopology, useTrack, useWaypoints } from './map-data.ts'
import { FAIR_DB, GOOD_DB } from './snr.ts'
import { waysOf } from './traceroute.ts'

/** More signals than these at once would hide the nodes. */
const MOST_NUMBERS = 12

/** Where the nodes are, beside a list of them that says the same in words. */
export function MapPage() {
  useNodes()
  const box = useRef<HTMLDivElement>(null)
  const map = useSignal<MeshMap | null>(null)
  const tiles = useTiles()
  const failure = useMap(box, map, tiles)
  const { query } = place.value
  const filter = readFilter(query)
  const placed = (nodes.value ?? []).filter(({ position, isIgnored }) => position !== null && !isIgnored)
  const chosen = nodes.value?.find(({ nodeId }) => nodeId === query.get('node')) ?? null
  // Whom somebody looks at stays on the map, whatever the filter says.
  const shown = placed.filter((node) => node === chosen || passes(node, filter, now.peek()))
  // Nodes grow old also while nothing is heard.
  const minute = useComputed(() => Math.floor(now.value / 60_000)).value
  const shownKey = `${shown.length} ${minute} ${query.toString()}`
  useEffect(() => map.value?.showNodes(shown, now.peek(), chosen?.nodeNum ?? null), [map.value, nodes.value, shownKey])
  const track = useTrack(chosen)
  useEffect(() => map.value?.showTrack(track), [map.value, track])
  const { links, traces } = useTopology(chosen)
  useEffect(
    () => map.value?.showLinks(links, chosen !== null || links.length <= MOST_NUMBERS),
    [map.value, nodes.value, links, shownKey],
  )
  useEffect(() => map.value?.showWays(traces.flatMap(waysOf)), [map.value, nodes.value, traces, shownKey])
  const waypoints = useWaypoints()
  useEffect(() => map.value?.showWaypoints(waypoints), [map.value, waypoints])
  return (
    <Page title={t.map.title} fill actions={<Layers fit={() => map.value?.fit()} />}>
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {failure.value && (
        <div class="notice notice-bad" role="alert">
          {t.map.failed}
        </div>
      )}
      <div class="map-page">
        <div class="map-box">
          <div class="map" ref={box} role="region" aria-label={t.map.label} />
          {nodes.value !== null && placed.length === 0 && <p class="map-note">{t.map.none}</p>}
          <Legend hasLinks={links.length + traces.length > 0} />
          {tiles.notice.value !== null && (
            <div class="map-notice" role="status">
              {tiles.notice.value}
              <button type="button" class="button small" onClick={tiles.retry}>
                {t.common.retry}
              </button>
            </div>
          )}
          {tiles.attribution.value !== null && <p class="map-attribution">{tiles.attribution.value}</p>}
        </div>
        <MapPanel
          shown={shown}
          total={placed.length}
          filter={filter}
          chosen={chosen}
          links={links}
          traces={traces}
          trackLength={track.length}
          waypoints={waypoints}
          onPlace={(at) => map.value?.goTo(at)}
        />
      </div>
    </Page>
  )
}

/** Draws the map when the page is there; what draws it is loaded when it is first wanted. */
function useMap(
  box: { readonly current: HTMLDivElement | null },
  map: { value: MeshMap | null },
  tiles: ReturnType<typeof useTiles>,
) {
  const hasFailed = useSignal(false)
  useEffect(() => {
    let isGone = false
    let drawn: MeshMap | null = null
    const draw = async () => {
      const { createMap } = await import('./map-view.ts')
      if (isGone || box.current === null) return
      drawn = createMap(box.current, (nodeId) => setQuery({ node: nodeId ?? '', trace: '' }), tiles.reports)
      map.value = drawn
    }
    draw().catch((cause: unknown) => {
      console.error(cause)
      hasFailed.value = true
    })
    return () => {
      isGone = true
      drawn?.destroy()
    }
  }, [])
  const { wanted, turn } = tiles
  useEffect(() => map.value?.showTiles(wanted.value), [map.value, wanted.value, turn.value])
  return hasFailed
}

function Layers({ fit }: { fit: () => void }) {
  const { query } = place.value
  const toggle = (name: 'links' | 'routes') => (
    <button
      type="button"
      class="button"
      aria-pressed={query.get(name) !== null}
      onClick={() => setQuery({ [name]: query.get(name) === null ? '1' : '', ...(name === 'routes' && { trace: '' }) })}
    >
      {t.map[name]}
    </button>
  )
  return (
    <>
      {can('info', 'read') && toggle('links')}
      {can('info', 'read') && toggle('routes')}
      <button type="button" class="button" onClick={fit}>
        {t.map.fit}
      </button>
    </>
  )
}

function Legend({ hasLinks }: { hasLinks: boolean }) {
  return (
    <div class="legend">
      {t.map.ages.map((name, index) => (
        <span key={name}>
          <i class={`age-${index}`} aria-hidden="true" />
          {name}
        </span>
      ))}
      <span class="wide-only">
        <i class="cell" aria-hidden="true" />
        {t.map.precision}
      </span>
      {hasLinks && (
        <>
          <span class="snr-good">
            <i class="stroke" aria-hidden="true" />
            {t.map.atLeast(GOOD_DB)}
          </span>
          <span class="snr-fair">
            <i class="stroke" aria-hidden="true" />
            {t.map.atLeast(FAIR_DB)}
          </span>
          <span class="snr-weak">
            <i class="stroke" aria-hidden="true" />
            {t.map.weaker}
          </span>
          <span class="snr-unknown">
            <i class="stroke dashed" aria-hidden="true" />
            {t.map.unknownHop}
          </span>
        </>
      )}
    </div>
  )
}
