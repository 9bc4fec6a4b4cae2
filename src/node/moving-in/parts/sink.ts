import { HOUR_MS } from '../../../shared/time.ts'
import type { Job } from '../job.ts'
import { createRows } from '../rows.ts'
import { NO_SUMMARY, type Summary } from './summaries.ts'

/** Rows that are written together, in the order of their key: a table without row ids is fastest that way. */
const ROWS_AT_ONCE = 10_000
const NO_MEASUREMENT = { nodeId: 0, metric: 0, t: 0, v: 0, channel: 0, deviceTime: 0 }
const NO_PLACE = {
  nodeId: 0,
  t: 0,
  deviceTime: 0,
  latitude: 0,
  longitude: 0,
  altitude: 0,
  precisionBits: 0,
  channel: 0,
}

/** NaN: unknown. */
export type Measurement = Readonly<Record<keyof typeof NO_MEASUREMENT, number>>
/** NaN: unknown. */
export type Place = Readonly<Record<keyof typeof NO_PLACE, number>>

/** Collects measurements, positions and summaries, and writes them in the order of their keys. */
export function createSink({ ctx, writer, tally }: Job) {
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
  const measurements = createRows(NO_MEASUREMENT)
  const places = createRows(NO_PLACE)
  const hours = createRows(NO_SUMMARY)
  const days = createRows(NO_SUMMARY)
  const flush = async () => {
    const measure = (index: number): boolean => {
      const row = measurements.get(index)
      if (measured.run(row).changes === 0) return false
      dirty.run({ nodeId: row.nodeId, metric: row.metric, hour: row.t - (row.t % HOUR_MS) })
      return true
    }
    tally.added('measurements', await writer.each(measurements.order('nodeId', 'metric', 't'), measure))
    const place = (index: number) => placed.run(places.get(index)).changes > 0
    tally.added('positions', await writer.each(places.order('nodeId', 't'), place))
    const rolled = { n: 0 }
    await writer.each(hours.order('nodeId', 'metric', 't'), (index) => hourly(hours.get(index)))
    await writer.each(days.order('nodeId', 'metric', 't'), (index) => {
      const day = days.get(index)
      const isNew = daily(day)
      if (isNew) rolled.n += day.n
      return isNew
    })
    tally.added('measurements', rolled.n)
    for (const rows of [measurements, places, hours, days]) rows.clear()
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
      const noted = metricIds.get(name)
      if (noted !== undefined) return noted
      const known = findMetric.get(name)
      if (known === undefined && !writer.isDry) newMetric.run(name)
      const id = known ?? findMetric.get(name) ?? -1 - metricIds.size
      metricIds.set(name, id)
      return id
    },
    measurement: (row: Measurement) => measurements.push(row),
    place: (row: Place) => places.push(row),
    hour: (row: Summary) => hours.push(row),
    day: (row: Summary) => days.push(row),
    flush,
    flushFull: async () => {
      if (measurements.length + places.length + hours.length + days.length >= ROWS_AT_ONCE) await flush()
    },
  }
}
