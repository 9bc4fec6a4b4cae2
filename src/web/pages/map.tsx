import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../api.ts'
import { useLoad } from '../load.ts'
import { nodeName, nodes, nodesError, refreshNodes, useNodes } from '../mesh.ts'
import { now } from '../parts/age.tsx'
import { Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { navigate, place, setQuery } from '../router.ts'
import { can } from '../session.ts'
import { t } from '../strings.ts'
import type { Link, MeshMap } from './map-view.ts'

type Track = InferResponseType<(typeof api.nodes)[':id']['positions']['$get']>

const DAY_MS = 86_400_000
const NEIGHBOR_POLL_MS = 60_000

/** Where the nodes are. What draws it is loaded when it is first wanted. */
export function MapPage() {
  useNodes()
  const box = useRef<HTMLDivElement>(null)
  const map = useSignal<MeshMap | null>(null)
  const hasFailed = useSignal(false)
  const hasLinks = useSignal(false)
  const chosenId = place.value.query.get('node')
  useEffect(() => {
    let isGone = false
    let drawn: MeshMap | null = null
    const draw = async () => {
      const { createMap } = await import('./map-view.ts')
      if (isGone || box.current === null) return
      drawn = createMap(box.current, (nodeId) => setQuery({ node: nodeId ?? '' }))
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
  const placed = (nodes.value ?? []).filter(({ position }) => position !== null)
  const chosen = placed.find(({ nodeId }) => nodeId === chosenId)
  useEffect(() => {
    map.value?.showNodes(placed, now.peek(), chosen?.nodeNum ?? null)
  }, [map.value, nodes.value, chosen?.nodeNum])
  const track = useTrack(chosen?.nodeId ?? null)
  useEffect(() => {
    map.value?.showTrack(track?.positions ?? [])
  }, [map.value, track])
  const neighbors = useLoad(
    async () => (can('info', 'read') ? (await ask(api.neighbors.$get())).neighbors : []),
    [],
    NEIGHBOR_POLL_MS,
  ).data.value
  useEffect(() => {
    const isShown = ({ nodeNum, neighborNum }: Link) =>
      hasLinks.value || nodeNum === chosen?.nodeNum || neighborNum === chosen?.nodeNum
    map.value?.showLinks((neighbors ?? []).filter(isShown))
  }, [map.value, neighbors, nodes.value, hasLinks.value, chosen?.nodeNum])
  const isEmpty = nodes.value !== null && placed.length === 0
  return (
    <Page
      title={t.map.title}
      fill
      actions={
        <>
          <label class="field inline">
            <span class="sr-only">{t.map.list}</span>
            <select value={chosen?.nodeId ?? ''} onChange={(event) => setQuery({ node: event.currentTarget.value })}>
              <option value="">{t.map.list}</option>
              {placed.map((node) => (
                <option key={node.nodeId} value={node.nodeId}>
                  {nodeName(node)}
                </option>
              ))}
            </select>
          </label>
          {chosen !== undefined && (
            <button type="button" class="button" onClick={() => navigate(`/nodes/${chosen.nodeId}`)}>
              {t.map.open}
            </button>
          )}
          {can('info', 'read') && (
            <button
              type="button"
              class="button"
              aria-pressed={hasLinks.value}
              onClick={() => (hasLinks.value = !hasLinks.value)}
            >
              {t.map.links}
            </button>
          )}
          <button type="button" class="button" onClick={() => map.value?.fit()}>
            {t.map.fit}
          </button>
        </>
      }
    >
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {hasFailed.value && (
        <div class="notice notice-bad" role="alert">
          {t.map.failed}
        </div>
      )}
      <div class="map-box">
        <div class="map" ref={box} role="region" aria-label={t.map.label} />
        {isEmpty && <p class="map-note">{t.map.none}</p>}
        <Legend />
      </div>
    </Page>
  )
}

function useTrack(nodeId: string | null): Track | null {
  const { data } = useLoad(async () => {
    if (nodeId === null) return null
    const query = { from: String(Date.now() - 7 * DAY_MS) }
    return ask(api.nodes[':id'].positions.$get({ param: { id: nodeId }, query }))
  }, [nodeId])
  return nodeId === null ? null : data.value
}

function Legend() {
  return (
    <div class="legend">
      {t.map.ages.map((name, index) => (
        <span key={name}>
          <i class={`age-${index}`} aria-hidden="true" />
          {name}
        </span>
      ))}
      <span class="wide-only">{t.map.precision}</span>
    </div>
  )
}
