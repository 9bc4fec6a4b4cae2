import type { Cutoffs } from '../../../app/retention/plan.ts'
import { EARLIEST_MS, MAX_AHEAD_MS } from '../../../meshtastic/device-time.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { DAY_MS, HOUR_MS, isFuture } from '../../../shared/time.ts'
import type { Job } from '../job.ts'
import { createRelief } from '../memory.ts'
import { integerIn, nodeNumIn, numberIn, type Row, textIn } from '../source/row.ts'
import { isDerived, METRIC_NAMES, PLACE_NAMES } from './metric-names.ts'
import { isPlace } from './nodes.ts'
import { type Places, withheld } from './places.ts'

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
/** Rows that are written together, in the order of their key: a table without row ids is fastest that way. */
const ROWS_AT_ONCE = 20_000
/** Copies of one packet from several sources arrive within this time. */
const COPIES_MS = HOUR_MS

type Measurement = { nodeId: number; metric: number; t: number; v: number; channel: number; deviceTime: number | null }
type Summary = {
  nodeId: number
  metric: number
  t: number
  n: number
  min: number
  max: number
  sum: number
  last: number
  channel: number
}
type Place = {
  nodeId: number
  t: number
  deviceTime: number | null
  latitude: number | null
  longitude: number | null
  altitude: number | null
  precisionBits: number | null
  channel: number
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
  const pending = new Map<string, Place>()
  const copies = createCopies(places.origins.length > 1)
  const taken = new Set<string>()
  // Only whole days are rolled up here: the service makes the summaries of the others from their measurements.
  const rawFrom = Math.ceil(cutoffs.telemetry / DAY_MS) * DAY_MS
  const flushPlaces = () => {
    for (const place of pending.values()) {
      const { latitude, longitude, t } = place
      if (latitude === null || longitude === null || !isPlace(latitude, longitude)) tally.lost('positions_incomplete')
      else {
        tally.found('positions')
        if (t < cutoffs.positions) tally.lost('positions_old')
        else sink.place({ ...place, latitude, longitude })
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
  const relieve = createRelief()
  let hour = 0
  for (const row of source.rows('telemetry', COLUMNS, 'order by timestamp')) {
    relieve()
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
    if (copies.isCopy(row, t, nodeId, type)) {
      tally.lost('measurements_twice', type)
      continue
    }
    const begun = t - (t % HOUR_MS)
    if (begun > hour) {
      hour = begun
      flushPlaces()
      takeHours(begun)
      taken.clear()
      await sink.flushFull()
    }
    const deviceTime = integerIn(row, 'packetTimestamp')
    if (isPart) {
      addPart(pending, { row, type, nodeId, t, v, deviceTime }, places)
      continue
    }
    const channel = channelOf(places, row)
    const one = { nodeId, metric: sink.metricId(metric ?? ''), t, v, channel, deviceTime }
    if (t >= rawFrom) {
      const key = `${nodeId} ${one.metric} ${t}`
      if (taken.has(key)) tally.lost('measurements_twice', type)
      else sink.measurement(one)
      taken.add(key)
    } else hours.add({ ...one, n: 1, min: v, max: v, sum: v, last: v })
  }
  flushPlaces()
  takeHours(Number.MAX_SAFE_INTEGER)
  await sink.flush()
}

function channelOf(places: Places, row: Row): number {
  const index = integerIn(row, 'channel')
  return index === null ? UNKNOWN_CHANNEL : withheld(places.numberOf(textIn(row, 'sourceId'), index))
}

type Part = { row: Row; type: string; nodeId: number; t: number; v: number; deviceTime: number | null }

/** Latitude, longitude and altitude of one time are one position. */
function addPart(pending: Map<string, Place>, { row, type, nodeId, t, v, deviceTime }: Part, places: Places): void {
  const key = `${nodeId} ${t}`
  const none = { latitude: null, longitude: null, altitude: null, precisionBits: null }
  const place = pending.get(key) ?? { nodeId, t, deviceTime, ...none, channel: channelOf(places, row) }
  pending.set(key, place)
  if (type === 'latitude') place.latitude ??= v
  else if (type === 'longitude') place.longitude ??= v
  else place.altitude ??= v
  place.precisionBits ??= integerIn(row, 'precisionBits')
}

/** Summaries of spans that are not over yet, by series. Rows must come in the order of time. */
function createSummaries(spanMs: number) {
  const open = new Map<number, Map<string, Summary>>()
  return {
    add(part: Summary) {
      const t = part.t - (part.t % spanMs)
      const span = open.get(t) ?? new Map<string, Summary>()
      open.set(t, span)
      const key = `${part.nodeId} ${part.metric}`
      const known = span.get(key)
      if (known === undefined) {
        const { nodeId, metric, n, min, max, sum, last, channel } = part
        span.set(key, { nodeId, metric, t, n, min, max, sum, last, channel })
        return
      }
      known.n += part.n
      known.min = Math.min(known.min, part.min)
      known.max = Math.max(known.max, part.max)
      known.sum += part.sum
      known.last = part.last
      if (known.channel !== part.channel) known.channel = UNKNOWN_CHANNEL
    },
    /** Takes out the summaries of spans that ended before this time. */
    *endedBefore(before: number) {
      for (const [t, span] of open) {
        if (t + spanMs > before) continue
        open.delete(t)
        yield* span.values()
      }
    },
  }
}

/** Recognises the same packet from another source by its id. */
function createCopies(isNeeded: boolean) {
  let earlier = new Set<string>()
  let latest = new Set<string>()
  let since = 0
  return {
    isCopy(row: Row, t: number, nodeId: number, type: string): boolean {
      const packetId = isNeeded ? integerIn(row, 'packetId') : null
      if (packetId === null || packetId === 0) return false
      if (t - since > COPIES_MS) {
        earlier = latest
        latest = new Set()
        since = t
      }
      const key = `${packetId} ${nodeId} ${type}`
      if (latest.has(key) || earlier.has(key)) return true
      latest.add(key)
      return false
    },
  }
}

/** Collects rows, and writes them in the order of their keys. */
function createSink({ ctx, writer, tally }: Job) {
  const { sqlite } = ctx.store
  const newMetric = sqlite.prepare('insert into metrics (name) values (?) on conflict do nothing')
  const findMetric = sqlite.prepare<[string], number>('select id from metrics where name = ?').pluck()
  // A service that heard the same packet has it under the time of the node's clock.
  const measured = sqlite.prepare(
    `insert into telemetry (node_id, metric, t, v, channel) select @nodeId, @metric, @t, @v, @channel
      where not exists (select 1 from telemetry where node_id = @nodeId and metric = @metric and t = @deviceTime and v = @v)
      on conflict do nothing`,
  )
  const dirty = sqlite.prepare('insert into telemetry_dirty values (@nodeId, @metric, @hour) on conflict do nothing')
  const placed = sqlite.prepare(
    `insert into positions (node_id, t, latitude, longitude, altitude, precision_bits, channel)
      select @nodeId, @t, @latitude, @longitude, @altitude, @precisionBits, @channel
      where not exists (select 1 from positions where node_id = @nodeId and t = @deviceTime) on conflict do nothing`,
  )
  const summed = (table: string) => {
    const known = sqlite
      .prepare<[Summary], number>(`select n from ${table} where node_id = @nodeId and metric = @metric and t = @t`)
      .pluck()
    // As the service does: of two summaries of one span, the one of more measurements stays.
    const write = sqlite.prepare(
      `insert into ${table} (node_id, metric, t, n, min, max, sum, last, channel)
        values (@nodeId, @metric, @t, @n, @min, @max, @sum, @last, @channel)
        on conflict (node_id, metric, t) do update set n = excluded.n, min = excluded.min, max = excluded.max,
        sum = excluded.sum, last = excluded.last, channel = excluded.channel`,
    )
    return (row: Summary): boolean => {
      const n = known.get(row)
      if (n !== undefined && n >= row.n) return false
      write.run(row)
      return n === undefined
    }
  }
  const hourly = summed('telemetry_hourly')
  const daily = summed('telemetry_daily')
  const metricIds = new Map<string, number>()
  let measurements: Measurement[] = []
  let places: (Place & { latitude: number; longitude: number })[] = []
  let hours: Summary[] = []
  let days: Summary[] = []
  const flush = async () => {
    const measure = (row: Measurement): boolean => {
      if (measured.run(row).changes === 0) return false
      dirty.run({ nodeId: row.nodeId, metric: row.metric, hour: row.t - (row.t % HOUR_MS) })
      return true
    }
    tally.added('measurements', await writer.each(measurements.toSorted(byKey), measure))
    tally.added('positions', await writer.each(places.toSorted(byTime), (row) => placed.run(row).changes > 0))
    const rolled = { n: 0 }
    await writer.each(hours.toSorted(byKey), hourly)
    await writer.each(days.toSorted(byKey), (row) => {
      const isNew = daily(row)
      if (isNew) rolled.n += row.n
      return isNew
    })
    tally.added('measurements', rolled.n)
    measurements = []
    places = []
    hours = []
    days = []
  }
  return {
    /** Ids by number. In a dry run, nodes that are not here yet have ids of their own. */
    readNodes(nums: ReadonlySet<number>): ReadonlyMap<number, number> {
      const rows = sqlite.prepare<[], { node_num: number; id: number }>('select node_num, id from nodes').all()
      const known = rows.map(({ node_num: nodeNum, id }) => [nodeNum, id] as const)
      return new Map([...(writer.isDry ? Array.from(nums, (num) => [num, -num] as const) : []), ...known])
    },
    /** In a dry run, metrics that are not here yet have a number of their own. */
    metricId(name: string): number {
      const known = metricIds.get(name) ?? findMetric.get(name)
      if (known === undefined && !writer.isDry) newMetric.run(name)
      const id = known ?? findMetric.get(name) ?? -1 - metricIds.size
      metricIds.set(name, id)
      return id
    },
    measurement: (row: Measurement) => measurements.push(row),
    place: (row: Place & { latitude: number; longitude: number }) => places.push(row),
    hour: (row: Summary) => hours.push(row),
    day: (row: Summary) => days.push(row),
    flush,
    flushFull: async () => {
      if (measurements.length + places.length + hours.length + days.length >= ROWS_AT_ONCE) await flush()
    },
  }
}

type Key = { readonly nodeId: number; readonly metric: number; readonly t: number }

const byKey = (a: Key, b: Key) => a.nodeId - b.nodeId || a.metric - b.metric || a.t - b.t
const byTime = (a: Omit<Key, 'metric'>, b: Omit<Key, 'metric'>) => a.nodeId - b.nodeId || a.t - b.t
