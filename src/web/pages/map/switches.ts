import { isRecord } from '../../api.ts'
import { preference } from '../../state/preferences.ts'
import { place } from '../../router.ts'
import { can, isAnonymous } from '../../state/session.ts'
import { isRangeName, isWithin, type Range, type RangeName, readRange } from '../../state/range.ts'
import { FAIR_DB, GOOD_DB } from '../../parts/mesh/snr.ts'
import type { Link } from './layers/lines.ts'
import { ANSWERED, type Traceroute, type Way } from '../../parts/mesh/traceroute.ts'

/**
 * What the map can show; `links`, `routes` and `heard` are those of all nodes. `broker`: those lines of `heard` that a
 * broker made.
 */
export const LAYERS = [
  'nodes',
  'labels',
  'clusters',
  'precision',
  'waypoints',
  'tracks',
  'live',
  'links',
  'routes',
  'heard',
  'broker',
] as const
export type LayerName = (typeof LAYERS)[number]
export type Layers = Readonly<Record<LayerName, boolean>>

const FIRST: Layers = {
  nodes: true,
  labels: true,
  clusters: true,
  precision: true,
  waypoints: true,
  tracks: true,
  live: false,
  links: false,
  routes: false,
  heard: false,
  broker: true,
}

/** The layers that this user switched on. */
export const layerChoice = preference<Layers>('map-layers', FIRST, (found) => {
  if (!isRecord(found)) return null
  const read = (name: LayerName) => {
    const value = found[name]
    return typeof value === 'boolean' ? value : FIRST[name]
  }
  return {
    nodes: read('nodes'),
    labels: read('labels'),
    clusters: read('clusters'),
    precision: read('precision'),
    waypoints: read('waypoints'),
    tracks: read('tracks'),
    live: read('live'),
    links: read('links'),
    routes: read('routes'),
    heard: read('heard'),
    broker: read('broker'),
  }
})

/** The chosen layers, and those that the page's address asks for. */
export function shownLayers(): Layers {
  const { query } = place.value
  const { value } = layerChoice.value
  const asked = (name: 'links' | 'routes') => can('info', 'read') && (value[name] || query.get(name) !== null)
  // The log of packets is not for people without an account.
  const heard = can('info', 'read') && !isAnonymous.value && value.heard
  return { ...value, links: asked('links'), routes: asked('routes'), heard }
}

export const BACKGROUNDS = ['auto', 'light', 'dark', 'none'] as const
/** How this user wants the tiles; `auto`: light or dark like the pages. */
export type Background = (typeof BACKGROUNDS)[number]

export const backgroundChoice = preference<Background>(
  'map-background',
  'auto',
  (found) => BACKGROUNDS.find((known) => known === found) ?? null,
)

export const LINE_SIGNALS = ['', 'fair', 'good'] as const
export const LINE_COUNTS = ['1', '2', '5', '20', '100'] as const

/**
 * Limits for lines: heard in this range, null: at any time; with this signal or a better one, empty: any. `least`: of
 * packets that were heard directly, at least so many.
 */
export type LineLimits<R = Range | null> = {
  readonly range: R
  readonly signal: (typeof LINE_SIGNALS)[number]
  readonly least: (typeof LINE_COUNTS)[number]
}

/** Earlier versions kept these hours, and had them in addresses. */
const OLDER_HOURS = new Map<string, RangeName | null>([
  ['', null],
  ['1', '1h'],
  ['6', '6h'],
  ['24', '24h'],
  ['168', '7d'],
])

/** `range`: the usual one of this user, if the address names none. */
export const lineLimits = preference<LineLimits<RangeName | null>>(
  'map-lines',
  { range: '24h', signal: '', least: '1' },
  (found) => {
    if (!isRecord(found)) return null
    const { range: kept = OLDER_HOURS.get(String(found['hours'])) } = found
    const range = kept === null || (typeof kept === 'string' && isRangeName(kept)) ? kept : undefined
    const signal = LINE_SIGNALS.find((known) => known === found['signal'])
    const least = LINE_COUNTS.find((known) => known === found['least']) ?? '1'
    return range === undefined || signal === undefined ? null : { range, signal, least }
  },
)

/** The range of the lines if this address names none. */
export const usualOfLines = (query: URLSearchParams): RangeName | null =>
  OLDER_HOURS.get(query.get('hours') ?? '-') ?? lineLimits.value.value.range

/** Earlier versions had these days in addresses. */
const OLDER_DAYS = new Map<string, RangeName>([
  ['1', '24h'],
  ['30', '30d'],
  ['90', '1y'],
])

/** The range of a track if this address names none. */
export const usualOfTrack = (query: URLSearchParams): RangeName => OLDER_DAYS.get(query.get('track') ?? '') ?? '7d'

/** The limits, with the range that the page's address asks for. */
export function shownLimits(query: URLSearchParams): LineLimits {
  return { ...lineLimits.value.value, range: readRange(query, usualOfLines(query)).range }
}

/** Whether a line heard at this time may be drawn. */
function isRecent(time: number | null, { range }: LineLimits, now: number): boolean {
  return range === null || (time !== null && isWithin(range, time, now))
}

/** Whether a hop with this signal may be drawn. A hop with an unknown signal is drawn only without a limit. */
function isHeard(snr: number | null, { signal }: LineLimits): boolean {
  return signal === '' || (snr !== null && snr >= (signal === 'good' ? GOOD_DB : FAIR_DB))
}

/** Links within the limits. */
export function limitLinks(links: readonly Link[], limits: LineLimits, now: number): readonly Link[] {
  return links.filter(({ timestamp, snr }) => isRecent(timestamp, limits, now) && isHeard(snr, limits))
}

/** Traceroutes whose answer is within the limits. */
export function limitTraces(traces: readonly Traceroute[], limits: LineLimits, now: number): readonly Traceroute[] {
  return traces.filter(
    ({ state, answeredAt, timestamp }) => state === ANSWERED && isRecent(answeredAt ?? timestamp, limits, now),
  )
}

/** The parts of a route whose hops are within the limits. */
export function limitWay(way: Way, limits: LineLimits): Way[] {
  if (limits.signal === '') return [way]
  return way.snr.flatMap((snr, hop) =>
    isHeard(snr, limits) ? { direction: way.direction, nodes: way.nodes.slice(hop, hop + 2), snr: [snr] } : [],
  )
}
