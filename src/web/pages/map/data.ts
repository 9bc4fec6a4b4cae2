import { type ReadonlySignal, type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { InferResponseType } from 'hono/client'
import { api, ask, askAs } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { useNeighbors } from '../../state/mesh/neighbors.ts'
import type { Node } from '../../state/mesh/nodes.ts'
import { place } from '../../router.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { t } from '../../strings.ts'
import type { Link, Spot } from './layers/lines.ts'
import type { Tiles } from '../../parts/map/tiles/archive.ts'
import type { TileReports } from '../../parts/map/tiles/tiles.ts'
import type { Waypoint } from './waypoints/waypoint.ts'
import { backgroundChoice, type Layers, type LineLimits, limitLinks, limitTraces, usualOfTrack } from './switches.ts'
import { ANSWERED, type Traceroute, type TraceroutePage } from '../../parts/mesh/traceroute.ts'
import { type Range, rangeKey, readRange, timesOf } from '../../state/range.ts'

const POLL_MS = 60_000
const MAX_TRACES = '100'
const TRACE_ID = /^[1-9]\d{0,15}$/

export type UsedTiles = {
  readonly wanted: Signal<Tiles | null>
  /** A changed number requests another attempt. */
  readonly turn: Signal<number>
  readonly notice: ReadonlySignal<string | null>
  readonly attribution: ReadonlySignal<string | null>
  /** Whether the built-in map is shown: everywhere, or around a map file. */
  readonly hasWorld: ReadonlySignal<boolean>
  readonly reports: TileReports
  /** Nobody has said yet what the map shows, and this user may. */
  readonly isUnset: ReadonlySignal<boolean>
  reload(): void
  retry(): void
}

/** The source of the tiles, and its state. */
export function useTiles(): UsedTiles {
  const turn = useSignal(0)
  const failed = useSignal(false)
  const ofTiles = useSignal<string | null>(null)
  const wanted = useSignal<Tiles | null>(null)
  const isUnset = useSignal(false)
  const isBlocked = useRef(false)
  useEffect(() => {
    const note = ({ effectiveDirective }: SecurityPolicyViolationEvent) => {
      isBlocked.current ||= effectiveDirective === 'img-src'
    }
    document.addEventListener('securitypolicyviolation', note)
    return () => document.removeEventListener('securitypolicyviolation', note)
  }, [])
  const { data, reload, error } = useLoad(async () => {
    const { tiles: chosen } = await ask(api.map.$get())
    const region = chosen === null && has('radio') ? await readRegion() : null
    const tiles =
      chosen === null ? tilesOf(region) : chosen.kind === 'url' ? chosen : { ...chosen, file: 'archive' as const }
    wanted.value = tiles
    ofTiles.value = tiles === null ? null : (tiles.attribution ?? ofTiles.value)
    const isOpen = chosen === null && (region === null || region.state === 'none') && can('settings', 'write')
    if (!isOpen) isUnset.value = false
    // Nothing waits for it, and without an answer nobody is asked.
    else
      void isConfigured().then(
        (found) => (isUnset.value = found),
        () => {},
      )
    return { tiles }
  }, [])
  const hasWorld = useComputed(
    () => error.value !== null || failed.value || (data.value !== null && data.value.tiles?.kind !== 'url'),
  )
  const attribution = useComputed(() => {
    const parts = [ofTiles.value, hasWorld.value && backgroundChoice.value.value !== 'none' ? t.map.world : null]
    return parts.filter((part) => part !== null).join(' · ') || null
  })
  const notice = useComputed(() => (failed.value || error.value?.code === 'map_unavailable' ? t.map.noTiles : null))
  return {
    wanted,
    turn,
    notice,
    attribution,
    hasWorld,
    isUnset,
    reload: () => void reload(),
    reports: useMemo(
      () => ({
        onFail: () => (failed.value = true),
        onAttribution: (text: string) => (ofTiles.value ??= text),
      }),
      [],
    ),
    retry: () => {
      // The tiles were chosen after this page was loaded. Only a reloaded page may show images of their host.
      if (isBlocked.current) location.reload()
      failed.value = false
      turn.value++
      void reload()
    },
  }
}

type Region = InferResponseType<typeof api.map.region.$get, 200>

/** The detailed map on this machine; null: it could not be asked for. */
async function readRegion(): Promise<Region | null> {
  try {
    return await ask(api.map.region.$get())
  } catch {
    return null
  }
}

/** Whether the setting is still the one of a new installation. */
async function isConfigured(): Promise<boolean> {
  return (await ask(api.settings.$get())).mapTiles.kind === 'configured'
}

function tilesOf(region: Region | null): Tiles | null {
  if (region === null || region.bounds === null) return null
  const { bounds, maxZoom, attribution } = region
  return { kind: 'archive', file: 'region.pmtiles', format: null, minZoom: 0, maxZoom, bounds, attribution }
}

const NO_SPOTS: readonly Spot[] = []

export type Track = { readonly spots: readonly Spot[]; readonly isLoaded: boolean }

/** Where the chosen node was, within the time in the page's address, oldest first. */
export function useTrack(chosen: Node | null): Track {
  const { query } = place.value
  const { range } = readRange(query, usualOfTrack(query))
  const id = chosen?.nodeId ?? null
  const wantedKey = `${id} ${rangeKey(range)}`
  const { data, error } = useLoad(async () => {
    if (id === null) return { key: wantedKey, spots: NO_SPOTS }
    const { since: from, until: to } = timesOf(range)
    const asked = { from, ...(to !== undefined && { to }) }
    const { positions } = await ask(api.nodes[':id'].positions.$get({ param: { id }, query: asked }))
    return { key: wantedKey, spots: positions }
  }, [wantedKey])
  // The track of the node chosen before is not that of this one.
  const isLoaded = data.value?.key === wantedKey
  return { spots: isLoaded ? (data.value?.spots ?? NO_SPOTS) : NO_SPOTS, isLoaded: isLoaded || error.value !== null }
}

export const NO_WAYPOINTS: readonly Waypoint[] = []

export function useWaypoints(): readonly Waypoint[] {
  const load = async () => (await ask(api.waypoints.$get())).waypoints
  // What this service sends tells of a delivery.
  return useLoad(load, [], POLL_MS, ['delivery']).data.value ?? NO_WAYPOINTS
}

type Topology = {
  readonly links: readonly Link[]
  /** False while the first answer is on its way. */
  readonly areLinksLoaded: boolean
  readonly traces: readonly Traceroute[]
  /** The traceroute that the page's address names; it is then the only one shown. Null: none. */
  readonly route: Traceroute | null
}

/** A range that ends now is left to the limits of the map: the latest traceroutes are found at once. */
const endOf = (range: Range | null) => (range === null || typeof range === 'string' ? {} : timesOf(range))

/** The lines of the map within the limits: those of the chosen node, and those of all nodes whose layer is shown. */
export function useTopology(chosen: Node | null, layers: Layers, limits: LineLimits): Topology {
  const { query } = place.value
  const mayRead = can('info', 'read')
  const traceId = query.get('trace')
  const wantsLinks = mayRead && (chosen !== null || layers.links)
  const wantsTraces = mayRead && (traceId !== null || layers.routes)
  const { data, error } = useNeighbors(wantsLinks)
  const heard = useHeard(layers, limits)
  const found = data.value
  const node = traceId === null ? (chosen?.nodeId ?? null) : null
  const traced = useLoad(
    async () => {
      if (!wantsTraces) return []
      if (traceId === null)
        return latestOfEach(
          await readTraces({ limit: MAX_TRACES, ...endOf(limits.range), ...(node !== null && { node }) }),
        )
      const id = Number(traceId)
      // People without an account get no earlier pages.
      const before = isAnonymous.value ? { limit: MAX_TRACES } : { limit: '1', before: String(id + 1) }
      return TRACE_ID.test(traceId) && Number.isSafeInteger(id + 1)
        ? (await readTraces(before)).filter((trace) => trace.id === id)
        : []
    },
    [wantsTraces, traceId, node, rangeKey(limits.range)],
    wantsTraces ? POLL_MS : undefined,
  ).data.value
  const nodeNum = chosen?.nodeNum ?? null
  const links = useMemo(() => {
    const some = [...(found ?? []), ...heard].filter(
      (link) => nodeNum === null || link.nodeNum === nodeNum || link.neighborNum === nodeNum,
    )
    return latestOfPairs(limitLinks(some, limits, Date.now()))
  }, [found, heard, nodeNum, limits])
  const route = traced?.find(({ id }) => String(id) === traceId) ?? null
  const traces = useMemo(
    () => (route === null ? limitTraces(traced ?? [], limits, Date.now()) : [route]),
    [traced, route, limits],
  )
  return { links, areLinksLoaded: !wantsLinks || found !== null || error.value !== null, traces, route }
}

const NO_LINKS: readonly Link[] = []

/** What the log of packets says, if that layer is on. */
function useHeard(layers: Layers, { range, least }: LineLimits): readonly Link[] {
  const { heard, broker } = layers
  const found = useLoad(
    async () => {
      if (!heard) return NO_LINKS
      return (await askAs<{ links: readonly Link[] }>(api.links.$get({ query: timesOf(range) }))).links
    },
    [heard, rangeKey(range)],
    heard ? POLL_MS : undefined,
  ).data.value
  return useMemo(
    () =>
      (heard ? (found ?? NO_LINKS) : NO_LINKS).filter(
        ({ count = 0, viaMqtt }) => count >= Number(least) && (broker || !viaMqtt),
      ),
    [found, heard, broker, least],
  )
}

/** The newest for each pair and direction. One without a broker goes before one with it. */
function latestOfPairs(links: readonly Link[]): readonly Link[] {
  const latest = new Map<string, Link>()
  for (const link of links) {
    const key = `${link.nodeNum} ${link.neighborNum}`
    const known = latest.get(key)
    const isNewer = known === undefined || link.timestamp > known.timestamp
    if (known === undefined || (known.viaMqtt === link.viaMqtt ? isNewer : known.viaMqtt)) latest.set(key, link)
  }
  return [...latest.values()]
}

type TracesAsked = { limit: string; before?: string; node?: string; since?: string; until?: string }

async function readTraces(query: TracesAsked): Promise<Traceroute[]> {
  return [...(await askAs<TraceroutePage>(api.traceroutes.$get({ query }))).traceroutes]
}

/** The newest answer for each pair of ends, newest first, because older ones would lie under it. */
function latestOfEach(traces: readonly Traceroute[]): Traceroute[] {
  const seen = new Set<string>()
  return traces.filter(({ state, fromNodeNum, toNodeNum }) => {
    const ends = `${fromNodeNum} ${toNodeNum}`
    return state === ANSWERED && !seen.has(ends) && seen.add(ends)
  })
}
