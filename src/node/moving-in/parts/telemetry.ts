import type { Cutoffs } from '../../../app/retention/plan.ts'
import { EARLIEST_MS, MAX_AHEAD_MS } from '../../../meshtastic/device-time.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { DAY_MS, HOUR_MS, isFuture } from '../../../shared/time.ts'
import type { Job } from '../job.ts'
import { integerIn, nodeNumIn, numberIn, type Row, textIn } from '../source/row.ts'
import { isDerived, METRIC_NAMES, PLACE_NAMES } from './metric-names.ts'
import { createCopies } from './copies.ts'
import { isPlace } from './nodes.ts'
import { type Places, withheld } from './places.ts'
import { createSink } from './sink.ts'
import { createSummaries, METRICS } from './summaries.ts'

const COLUMNS = [
  'nodeNum',
  'telemetryType',
  'timestamp',
  'value',
  'packetTimestamp',
  'packetId',
  'channel',
  'precisionBits',
  'sourceId',
]
/** More than the types. */
const TYPES = 2 ** 12
const TYPE_NUMBERS = new Map([...METRIC_NAMES.keys(), ...PLACE_NAMES].map((type, number) => [type, number]))

/** Of one position; NaN: unknown. */
type Parts = {
  readonly nodeId: number
  readonly deviceTime: number
  latitude: number | null
  longitude: number | null
  altitude: number
  precisionBits: number
  readonly channel: number
}

/**
 * Reads all measurements once, in the order of time, and writes the recent ones as they are, older ones as hours and
 * days. Each hour and day is written whole, so that doing it again changes nothing.
 */
export async function importTelemetry(
  job: Job,
  places: Places,
  { cutoffs, nodes }: { readonly cutoffs: Cutoffs; readonly nodes: ReadonlySet<number> },
): Promise<void> {
  const { source, tally, now } = job
  const sink = createSink(job)
  const nodeIds = sink.readNodes(nodes)
  const hours = createSummaries(HOUR_MS)
  const days = createSummaries(DAY_MS)
  const pending = new Map<number, Parts>()
  const copies = places.origins.length > 1 ? createCopies() : null
  const taken = new Set<number>()
  // Only whole days are rolled up here: the service makes the summaries of the others from their measurements.
  const rawFrom = Math.ceil(cutoffs.telemetry / DAY_MS) * DAY_MS
  const flushPlaces = (t: number) => {
    for (const { latitude, longitude, ...rest } of pending.values()) {
      if (latitude === null || longitude === null || !isPlace(latitude, longitude)) tally.lost('positions_incomplete')
      else {
        tally.found('positions')
        if (t < cutoffs.positions) tally.lost('positions_old')
        else sink.place({ ...rest, t, latitude, longitude })
      }
    }
    pending.clear()
  }
  const takeHours = (before: number) => {
    for (const hour of hours.endedBefore(before)) {
      days.add(hour)
      if (hour.t >= cutoffs.telemetry_hourly) sink.hour(hour)
    }
    for (const day of days.endedBefore(before)) sink.day(day)
  }
  let latest = 0
  for (const row of source.rows('telemetry', COLUMNS, 'order by timestamp')) {
    const type = textIn(row, 'telemetryType') ?? ''
    const t = integerIn(row, 'timestamp')
    const v = numberIn(row, 'value')
    const nodeNum = nodeNumIn(row, 'nodeNum')
    const isPart = PLACE_NAMES.has(type)
    const metric = METRIC_NAMES.get(type)
    if (metric === undefined && !isPart) {
      tally.lost(isDerived(type) ? 'measurements_derived' : 'measurements_unknown', type)
      continue
    }
    if (!isPart) tally.found('measurements')
    if (t === null || v === null || t < EARLIEST_MS || isFuture(t, now, MAX_AHEAD_MS)) {
      tally.lost('measurements_bad_time')
      continue
    }
    const nodeId = nodeNum === null ? undefined : nodeIds.get(nodeNum)
    if (nodeId === undefined) {
      tally.lost('measurements_without_node', nodeNum === null ? null : `!${nodeNum.toString(16).padStart(8, '0')}`)
      continue
    }
    const value = nodeId * TYPES + (TYPE_NUMBERS.get(type) ?? 0)
    if (copies?.isCopy(integerIn(row, 'packetId') ?? 0, value, t) === true) {
      tally.lost('measurements_twice', type)
      continue
    }
    if (t > latest) {
      flushPlaces(latest)
      taken.clear()
      const hour = t - (t % HOUR_MS)
      if (hour > latest) {
        takeHours(hour)
        await sink.flushFull()
      }
      latest = t
    }
    const deviceTime = orNaN(integerIn(row, 'packetTimestamp'))
    if (isPart) {
      addPart(pending, { row, type, nodeId, v, deviceTime }, places)
      continue
    }
    const channel = channelOf(places, row)
    const one = { nodeId, metric: sink.metricId(metric ?? ''), t, v, channel, deviceTime }
    if (t >= rawFrom) {
      const series = nodeId * METRICS + one.metric
      if (taken.has(series)) tally.lost('measurements_twice', type)
      else sink.measurement(one)
      taken.add(series)
    } else hours.add({ ...one, n: 1, min: v, max: v, sum: v, last: v })
  }
  flushPlaces(latest)
  takeHours(Number.MAX_SAFE_INTEGER)
  await sink.flush()
}

function channelOf(places: Places, row: Row): number {
  const index = integerIn(row, 'channel')
  return index === null ? UNKNOWN_CHANNEL : withheld(places.numberOf(textIn(row, 'sourceId'), index))
}

type Part = { row: Row; type: string; nodeId: number; v: number; deviceTime: number }

/** Latitude, longitude and altitude of one time are one position. */
function addPart(pending: Map<number, Parts>, { row, type, nodeId, v, deviceTime }: Part, places: Places): void {
  const none = { latitude: null, longitude: null, altitude: Number.NaN, precisionBits: Number.NaN }
  const parts = pending.get(nodeId) ?? { nodeId, deviceTime, ...none, channel: channelOf(places, row) }
  pending.set(nodeId, parts)
  if (type === 'latitude') parts.latitude ??= v
  else if (type === 'longitude') parts.longitude ??= v
  else if (Number.isNaN(parts.altitude)) parts.altitude = v
  if (Number.isNaN(parts.precisionBits)) parts.precisionBits = orNaN(integerIn(row, 'precisionBits'))
}

const orNaN = (value: number | null): number => value ?? Number.NaN
