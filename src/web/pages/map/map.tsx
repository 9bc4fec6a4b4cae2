import type { RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import { nodes, nodesError, refreshNodes, useNodes } from '../../state/mesh.ts'
import { now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import '../../styles/map.css'
import { place, setQuery } from '../../router.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { type UsedTiles, useTiles, useTopology, useTrack, useWaypoints } from './data.ts'
import { useDrawing, useMap } from './layers/drawing.ts'
import { passes, readFilter } from './filter.ts'
import { Legend } from './legend.tsx'
import { MapPanel } from './panel.tsx'

/** Where the nodes are, beside a list of them that says the same in words. */
export function MapPage() {
  useNodes()
  const box = useRef<HTMLDivElement>(null)
  const tiles = useTiles()
  const { map, hasFailed } = useMap(box, tiles)
  const { query } = place.value
  const filter = readFilter(query)
  const placed = (nodes.value ?? []).filter(({ position, isIgnored }) => position !== null && !isIgnored)
  const chosen = nodes.value?.find(({ nodeId }) => nodeId === query.get('node')) ?? null
  // The selected node stays on the map, regardless of the filter.
  const shown = placed.filter((node) => node === chosen || passes(node, filter, now.peek()))
  const content = { shown, chosen, track: useTrack(chosen), ...useTopology(chosen), waypoints: useWaypoints() }
  useDrawing(map, content)
  return (
    <Page title={t.map.title} fill actions={<Layers fit={() => map.value?.fit()} />}>
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {hasFailed.value && (
        <div class="notice notice-bad" role="alert">
          {t.map.failed}
        </div>
      )}
      <div class="map-page">
        <MapBox
          box={box}
          tiles={tiles}
          isEmpty={nodes.value !== null && placed.length === 0}
          hasLines={content.links.length + content.traces.length > 0}
        />
        <MapPanel
          {...content}
          total={placed.length}
          filter={filter}
          trackLength={content.track.length}
          onPlace={(at) => map.value?.goTo(at)}
        />
      </div>
    </Page>
  )
}

type BoxProps = { box: RefObject<HTMLDivElement | null>; tiles: UsedTiles; isEmpty: boolean; hasLines: boolean }

function MapBox({ box, tiles, isEmpty, hasLines }: BoxProps) {
  return (
    <div class="map-box">
      <div class="map" ref={box} role="region" aria-label={t.map.label} />
      {isEmpty && (
        <div class="map-note">
          <p>{t.map.none}</p>
          <ConnectHelp />
        </div>
      )}
      <Legend hasLines={hasLines} />
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
  )
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
