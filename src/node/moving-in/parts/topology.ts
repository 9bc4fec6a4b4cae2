import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Route } from '../../../meshtastic/payload/route.ts'
import { removeHidden } from '../../../shared/hidden-characters.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { type Job, plausibleTime } from '../job.ts'
import { flagIn, integerIn, nodeNumIn, numberIn, type Row, textIn } from '../source/row.ts'
import { isPlace } from './nodes.ts'
import { type Places, withheld } from './places.ts'

const ROWS_AT_ONCE = 500
const SECOND_MS = 1000
const U32 = 2 ** 32
/** A service that heard the same answer noted it within this time. Radios ask less often than every 30 s. */
const SAME_MS = 15_000
/** The radios' fields end with a zero. */
const MAX_TEXT = 100

type Traceroute = {
  source: string | null
  requestId: number
  from: number
  to: number
  t: number
  route: string
  channel: number
}

/** Adds answered traceroutes. The program stores the answer, whose sender is the node that was asked. */
export async function importTraceroutes(job: Job, places: Places): Promise<void> {
  const { source, tally, writer, ctx } = job
  const insert = ctx.store.sqlite.prepare(
    `insert into traceroutes (source_id, request_id, from_node_num, to_node_num, timestamp, answered_at, state, route, channel)
      select (select id from sources where name = @source), @requestId, @from, @to, @t, @t, 'delivered', @route, @channel
      where not exists (select 1 from traceroutes where to_node_num = @to and from_node_num = @from and route = @route
        and answered_at between @t - ${SAME_MS} and @t + ${SAME_MS} and request_id <> @requestId)
      on conflict do nothing`,
  )
  let rows: Traceroute[] = []
  const flush = async () => {
    tally.added('traceroutes', await writer.each(rows, (row) => insert.run(row).changes > 0))
    rows = []
  }
  const columns = [
    'fromNodeNum',
    'toNodeNum',
    'route',
    'routeBack',
    'snrTowards',
    'snrBack',
    'timestamp',
    'channel',
    'sourceId',
    'packetId',
  ]
  for (const row of source.rows('traceroutes', columns, 'order by timestamp, id')) {
    const read = readTraceroute(job, places, row)
    if (read === null) {
      tally.lost('traceroutes_unanswered')
      continue
    }
    tally.found('traceroutes')
    rows.push(read)
    if (rows.length >= ROWS_AT_ONCE) await flush()
  }
  await flush()
}

function readTraceroute(job: Job, places: Places, row: Row): Traceroute | null {
  const [responder, requester] = [nodeNumIn(row, 'fromNodeNum'), nodeNumIn(row, 'toNodeNum')]
  const t = plausibleTime(job, integerIn(row, 'timestamp'))
  const hops = listIn(row, 'route')
  if (responder === null || requester === null || t === null || hops === null) return null
  const route: Route = {
    route: hops.map(knownNode),
    snrTowards: (listIn(row, 'snrTowards') ?? []).map(decibels),
    routeBack: (listIn(row, 'routeBack') ?? []).map(knownNode),
    snrBack: (listIn(row, 'snrBack') ?? []).map(decibels),
  }
  const packetId = integerIn(row, 'packetId')
  const key = textIn(row, 'sourceId')
  const index = integerIn(row, 'channel')
  return {
    source: places.originOf(key)?.name ?? null,
    // The id of the request is not in the file.
    requestId: packetId !== null && packetId > 0 && packetId < U32 ? packetId : Math.floor(t / SECOND_MS) % U32,
    from: requester,
    to: responder,
    t,
    route: JSON.stringify(route),
    channel: index === null ? UNKNOWN_CHANNEL : withheld(places.numberOf(key, index)),
  }
}

function listIn(row: Row, column: string): number[] | null {
  try {
    const value: unknown = JSON.parse(textIn(row, column) ?? 'null')
    return Array.isArray(value) ? value.map(Number).filter(Number.isFinite) : null
  } catch {
    return null
  }
}

const knownNode = (nodeNum: number) => (nodeNum === BROADCAST || nodeNum <= 0 ? null : nodeNum)
const decibels = (quarters: number) => (quarters === -128 ? null : quarters / 4)

type Neighbor = { node: number; neighbor: number; snr: number; t: number; channel: number }

/** Takes the latest report of each node, unless a later one is known here. */
export async function importNeighbors(job: Job): Promise<void> {
  const { source, tally, writer, ctx } = job
  const reports = new Map<number, { t: number; rows: Neighbor[] }>()
  for (const row of source.rows('neighbor_info', ['nodeNum', 'neighborNodeNum', 'snr', 'timestamp'], 'order by id')) {
    const [node, neighbor] = [nodeNumIn(row, 'nodeNum'), nodeNumIn(row, 'neighborNodeNum')]
    const t = plausibleTime(job, integerIn(row, 'timestamp'))
    const snr = numberIn(row, 'snr')
    if (node === null || neighbor === null || t === null || snr === null) continue
    const report = reports.get(node)
    const one = { node, neighbor, snr, t, channel: UNKNOWN_CHANNEL }
    if (report === undefined || t > report.t + SECOND_MS) {
      if (report !== undefined) tally.lost('neighbors_older', null, report.rows.length)
      reports.set(node, { t, rows: [one] })
    } else if (t < report.t - SECOND_MS) tally.lost('neighbors_older')
    else report.rows.push(one)
  }
  const { sqlite } = ctx.store
  const known = sqlite.prepare<[number], number | null>('select max(t) from neighbors where node_num = ?').pluck()
  const clear = sqlite.prepare('delete from neighbors where node_num = ?')
  const insert = sqlite.prepare(
    'insert into neighbors (node_num, neighbor_num, snr, t, channel) values (@node, @neighbor, @snr, @t, @channel) on conflict do nothing',
  )
  const counted = { n: 0 }
  tally.found(
    'neighbors',
    [...reports.values()].reduce((n, { rows }) => n + rows.length, 0),
  )
  await writer.each([...reports], ([node, { t, rows }]) => {
    if ((known.get(node) ?? 0) >= t) return false
    clear.run(node)
    for (const row of rows) counted.n += insert.run({ ...row, t }).changes
    return true
  })
  tally.added('neighbors', counted.n)
}

/** Takes real waypoints; of one with several copies, the latest. */
export async function importWaypoints(job: Job, places: Places): Promise<void> {
  const { source, tally, writer, ctx } = job
  const columns = [
    'source_id',
    'waypoint_id',
    'owner_node_num',
    'latitude',
    'longitude',
    'expire_at',
    'locked_to',
    'name',
    'description',
    'icon_codepoint',
    'is_virtual',
    'first_seen_at',
    'last_updated_at',
    'channel',
  ]
  const insert = ctx.store.sqlite.prepare(
    `insert into waypoints (id, from_node_num, t, name, description, icon, latitude, longitude, expires_at, locked_to, channel)
      values (@id, @from, @t, @name, @description, @icon, @latitude, @longitude, @expiresAt, @lockedTo, @channel)
      on conflict (id) do update set from_node_num = excluded.from_node_num, t = excluded.t, name = excluded.name,
        description = excluded.description, icon = excluded.icon, latitude = excluded.latitude,
        longitude = excluded.longitude, expires_at = excluded.expires_at, locked_to = excluded.locked_to,
        channel = excluded.channel where excluded.t > waypoints.t and not waypoints.heard`,
  )
  const latest = new Map<number, { t: number } & Record<string, number | string | null>>()
  for (const row of source.rows('waypoints', columns)) {
    if (flagIn(row, 'is_virtual')) {
      tally.lost('waypoints_virtual', textIn(row, 'name'))
      continue
    }
    const id = integerIn(row, 'waypoint_id')
    const from = nodeNumIn(row, 'owner_node_num')
    const [latitude, longitude] = [numberIn(row, 'latitude'), numberIn(row, 'longitude')]
    const seen = plausibleTime(job, integerIn(row, 'last_updated_at') ?? integerIn(row, 'first_seen_at'))
    if (id === null || from === null || seen === null || !isPlace(latitude, longitude)) {
      tally.lost('waypoints_incomplete', textIn(row, 'name'))
      continue
    }
    tally.found('waypoints')
    const known = latest.get(id)
    if (known !== undefined && known.t >= seen) continue
    const expires = integerIn(row, 'expire_at')
    const index = integerIn(row, 'channel')
    const icon = integerIn(row, 'icon_codepoint')
    latest.set(id, {
      id,
      from,
      t: seen,
      name: removeHidden(textIn(row, 'name') ?? '').slice(0, MAX_TEXT),
      description: removeHidden(textIn(row, 'description') ?? '').slice(0, MAX_TEXT),
      icon: icon !== null && icon > 0x20 && icon <= 0x10_ff_ff ? String.fromCodePoint(icon) : null,
      latitude,
      longitude,
      expiresAt: expires === null || expires <= 0 ? null : expires * SECOND_MS,
      lockedTo: nodeNumIn(row, 'locked_to'),
      channel: index === null ? UNKNOWN_CHANNEL : withheld(places.numberOf(textIn(row, 'source_id'), index)),
    })
  }
  tally.added('waypoints', await writer.each([...latest.values()], (row) => insert.run(row).changes > 0))
}
