import { UNKNOWN_CHANNEL } from '../../../src/shared/mesh/channels.ts'
import { type Identity, keyBytes, type Place, type Sent } from './made-up.ts'

/** How a packet reached the radio. Times in seconds, as radios report them. */
export type Arrival = {
  readonly rxTime: number
  readonly rxSnr: number | null
  readonly rxRssi: number | null
  readonly hopStart: number
  readonly hopLimit: number
  readonly viaMqtt: boolean
}

/** An entry of a radio's node database. */
export type Entry = {
  readonly nodeNum: number
  readonly user: Identity | null
  readonly lastHeard: number
  readonly snr: number
  readonly hops: number | null
  readonly channel: number
  readonly viaMqtt: boolean
  readonly place: Place | null
  readonly metrics: Readonly<Record<string, number>>
}

type Row = Record<string, unknown>
type Measured = { readonly nodeNum: number; readonly metric: string; readonly t: number; readonly v: number }
type NodeRow = Record<string, string | number | null>

const HOUR = 3_600_000
const METRIC_COLUMNS = {
  'deviceMetrics.batteryLevel': 'battery_level',
  'deviceMetrics.voltage': 'voltage',
  'deviceMetrics.channelUtilization': 'channel_utilization',
  'deviceMetrics.airUtilTx': 'air_util_tx',
  'deviceMetrics.uptimeSeconds': 'uptime_seconds',
} as const satisfies Record<string, string>

/** What the database must contain, derived only from what was sent, by the rules: no line of the service is used. */
export type MeshModel = {
  /** A packet that the radio reported; `isReplayed`: from its memory. */
  hear(sent: Sent, arrival: Arrival, at: number, isReplayed?: boolean): void
  /** An entry of the radio's node database. */
  readEntry(entry: Entry, at: number): void
  /** By table, as `readTables` reads them. */
  tables(): Record<string, unknown[]>
}

export function createMeshModel(own: number): MeshModel {
  const nodes = new Map<number, NodeRow>()
  const seen = new Map<string, number | null>()
  const messages = new Map<string, Row>()
  const receptions: Row[] = []
  const positions = new Map<string, Row>()
  const telemetry = new Map<string, Measured>()
  const packets: Row[] = []
  const routes: Row[] = []
  const neighbors = new Map<number, Row[]>()
  const waypoints = new Map<number, Row>()

  const nodeOf = (nodeNum: number, firstHeard: number, viaMqtt: boolean): NodeRow => {
    const node = nodes.get(nodeNum) ?? newNode(nodeNum, nodeNum === own, firstHeard, viaMqtt)
    nodes.set(nodeNum, node)
    return node
  }
  const addPosition = (nodeNum: number, { t, ...place }: Place) => {
    const key = `${nodeNum} ${t}`
    if (t !== null && !positions.has(key)) positions.set(key, { nodeNum, t, ...place })
  }
  const addContent = (sent: Sent, at: number, receipt: number, isReplayed: boolean) => {
    const { from, effect } = sent
    if (effect.kind === 'place') addPosition(from, { ...effect.place, t: effect.place.t ?? receipt })
    if (effect.kind === 'values') {
      for (const [metric, v] of Object.entries(effect.values)) {
        const t = effect.t ?? receipt
        const key = `${from} ${metric} ${t}`
        if (!telemetry.has(key)) telemetry.set(key, { nodeNum: from, metric, t, v })
      }
    }
    if (effect.kind === 'route' && sent.to !== 0xffffffff && !isReplayed) {
      const ends = { requestId: effect.requestId, from: sent.to, to: from }
      routes.push({ ...ends, answeredAt: at, route: effect.route, state: 'delivered' })
    }
    const t = at - receipt > 60_000 ? receipt : at
    if (effect.kind === 'neighbors' && !neighbors.get(from)?.some((link) => Number(link['t']) > t)) {
      neighbors.set(
        from,
        [...effect.neighbors].map(([neighborNum, snr]) => ({ nodeNum: from, neighborNum, snr, t })),
      )
    }
    if (effect.kind === 'waypoint') {
      const { id, isOver, name, latitude, longitude, lockedTo } = effect.waypoint
      const owner = waypoints.get(id)?.['lockedTo'] ?? null
      if ((owner !== null && owner !== from) || Number(waypoints.get(id)?.['t']) > t) return
      if (isOver) waypoints.delete(id)
      else waypoints.set(id, { id, from, t, name, latitude, longitude, lockedTo })
    }
  }
  const addMessage = (sent: Sent, arrival: Arrival, at: number) => {
    const { effect, from, id, to, channel } = sent
    if (effect.kind !== 'text') return
    const hops = hopsOf(arrival)
    const signal = { hopsAway: hops, rxSnr: arrival.rxSnr, rxRssi: arrival.rxRssi, viaMqtt: Number(arrival.viaMqtt) }
    const key = `${from} ${id}`
    const known = messages.get(key)
    if (known === undefined) {
      const { text, replyId, emoji } = effect
      const said = {
        text,
        replyId,
        emoji: Number(emoji),
        direction: from === own ? 'out' : 'in',
        timestamp: Math.min(arrival.rxTime * 1000, at),
      }
      messages.set(key, { packetId: id, from, to, channel, ...said, ...signal })
    } else Object.assign(known, signal)
  }
  return {
    hear(sent, arrival, at, isReplayed = false) {
      const { from, id } = sent
      const hops = hopsOf(arrival)
      const key = `${from} ${id}`
      const isFirst = !seen.has(key)
      const fewest = seen.get(key) ?? null
      const signal = { rxSnr: arrival.rxSnr, rxRssi: arrival.rxRssi, hopsAway: hops }
      if (isFirst && sent.effect.kind === 'text') receptions.push({ from, packetId: id, gateway: 0, t: at, ...signal })
      // For packets that nobody here can decrypt, fewer hops are not news.
      const isShorter = hops !== null && (fewest === null || hops < fewest) && isReadable(sent)
      if (!isFirst && !isShorter) return
      seen.set(key, hops === null || fewest === null ? (hops ?? fewest) : Math.min(hops, fewest))
      addMessage(sent, arrival, at)
      const rxTime = Math.min(arrival.rxTime * 1000, at)
      const node = nodeOf(from, rxTime, from !== own && arrival.viaMqtt)
      const news: NodeRow = { last_heard: rxTime, via_mqtt: 0 }
      if (from !== own) {
        const isDirect = hops === 0 && !arrival.viaMqtt
        Object.assign(news, { hops_away: hops, via_mqtt: Number(arrival.viaMqtt) })
        Object.assign(news, { channel: sent.port === null ? null : sent.channel })
        Object.assign(news, isDirect ? { snr: arrival.rxSnr, rssi: arrival.rxRssi } : {})
      }
      if (isFirst) {
        packets.push(logged(sent, arrival, at, isReplayed))
        Object.assign(news, contentOf(sent, arrival.rxTime * 1000))
        if (sent.effect.kind === 'place') news['position_channel'] = from === own ? null : sent.channel
        addContent(sent, at, arrival.rxTime * 1000, isReplayed)
      }
      // What was delayed somewhere for more than a minute is older than it looks.
      if (isReplayed || at - rxTime > 60_000) remember(node, news)
      else replace(node, news)
    },
    readEntry({ nodeNum, user, lastHeard, snr, hops, channel, viaMqtt, place, metrics }, at) {
      const heard = lastHeard === 0 ? null : Math.min(lastHeard * 1000, at)
      const node = nodeOf(nodeNum, heard ?? at, viaMqtt)
      const isOwn = nodeNum === own
      remember(node, {
        last_heard: heard,
        via_mqtt: Number(viaMqtt),
        channel,
        ...(isOwn ? {} : { hops_away: hops, snr: hops === 0 && !viaMqtt ? snr : null }),
        ...(user === null ? {} : identityOf(user)),
        ...(place === null ? {} : { ...placeOf(place, place.t), position_channel: isOwn ? null : UNKNOWN_CHANNEL }),
        ...metricsOf(metrics, heard),
      })
      if (place !== null) addPosition(nodeNum, place)
    },
    tables: () => ({
      nodes: Array.from(nodes.values(), ({ position_channel: _channel, ...node }) => node),
      messages: [...messages.values()],
      receptions,
      positions: [...positions.values()],
      telemetry: [...telemetry.values()],
      dirty: [
        ...new Set([...telemetry.values()].map(({ nodeNum, metric, t }) => `${nodeNum} ${metric} ${t - (t % HOUR)}`)),
      ],
      packets,
      traceroutes: routes,
      neighbors: [...neighbors.values()].flat(),
      waypoints: [...waypoints.values()],
    }),
  }
}

export function hopsOf({ hopStart, hopLimit }: Arrival): number | null {
  return hopStart > 0 && hopStart >= hopLimit ? hopStart - hopLimit : null
}

function isReadable({ port, logged: content }: Sent): boolean {
  return port !== null && !('kind' in content && content.kind === 'malformed')
}

function newNode(nodeNum: number, isLocal: boolean, firstHeard: number, viaMqtt: boolean): NodeRow {
  const text = { long_name: null, short_name: null, public_key: null, previous_public_key: null, notes: '' }
  // Nothing here is signed, and nobody speaks for our own radio.
  const authenticity = { refused_public_key: null, spoof_claim: null, signed_at: null }
  const signed = { key_signed: 0, name_signed: 0, position_signed: 0 }
  const flags = {
    is_licensed: 0,
    key_mismatch: 0,
    spoof_suspected: 0,
    is_favorite: 0,
    is_ignored: 0,
    is_hidden: 0,
    is_muted: 0,
  }
  const place = { latitude: null, longitude: null, altitude: null, precision_bits: null, position_time: null }
  const metrics = Object.fromEntries(Object.values(METRIC_COLUMNS).map((column) => [column, null]))
  const arrival = { snr: null, rssi: null, hops_away: null, last_heard: null, channel: null, via_mqtt: Number(viaMqtt) }
  const rest = {
    hw_model: null,
    firmware_version: null,
    role: null,
    device_metrics_time: null,
    first_heard: firstHeard,
  }
  const who = { node_num: nodeNum, is_local: Number(isLocal) }
  return { ...who, ...text, ...authenticity, ...signed, ...flags, ...place, ...metrics, ...arrival, ...rest }
}

function identityOf({ longName, shortName, role, isLicensed, key }: Identity): NodeRow {
  const publicKey = Buffer.from(keyBytes(key)).toString('base64')
  const names = { long_name: longName, short_name: shortName, hw_model: 43 }
  return { ...names, role, is_licensed: Number(isLicensed), public_key: publicKey }
}

function placeOf({ latitude, longitude, altitude, precisionBits }: Place, time: number | null): NodeRow {
  return { latitude, longitude, altitude, precision_bits: precisionBits, position_time: time }
}

function metricsOf(values: Readonly<Record<string, number>>, time: number | null): NodeRow {
  const known = Object.entries(METRIC_COLUMNS).filter(([name]) => values[name] !== undefined)
  const columns = Object.fromEntries(known.map(([name, column]) => [column, values[name] ?? null]))
  return known.length === 0 ? {} : { ...columns, device_metrics_time: time }
}

function contentOf({ effect }: Sent, receipt: number): NodeRow {
  if (effect.kind === 'user') return identityOf(effect.user)
  if (effect.kind === 'place') return placeOf(effect.place, effect.place.t ?? receipt)
  if (effect.kind === 'values') return metricsOf(effect.values, effect.t ?? receipt)
  return {}
}

const IDENTITY = ['is_licensed', 'long_name', 'short_name', 'hw_model', 'role']

/** The identity of a node: the first key stays, and nothing comes with another one. Older data only fills gaps. */
function identify(
  node: NodeRow,
  { public_key: key = null, is_licensed: isLicensed = null, ...told }: NodeRow,
  isLatest = true,
): void {
  const known = node['public_key'] ?? null
  const isOther = key !== null && known !== null && key !== known
  const isLocal = node['is_local'] === 1
  const isTaken = isLatest && (!isOther || isLocal)
  if (isLicensed !== null && (isTaken || (node['role'] ?? null) === null)) node['is_licensed'] = isLicensed
  for (const column of IDENTITY.slice(1)) {
    const [news, before] = [told[column] ?? null, node[column] ?? null]
    node[column] = isTaken ? (news ?? before) : (before ?? news)
  }
  if (isLatest && isOther) {
    if (isLocal) node['previous_public_key'] ??= known
    else node['refused_public_key'] = key
    node['key_mismatch'] = 1
  }
  node['public_key'] = isTaken ? (key ?? known) : (known ?? key)
  node['last_heard'] = Math.max(Number(node['last_heard']), Number(told['last_heard'])) || null
}

/** A new report replaces the earlier ones of a node, except in measurements from before. */
function replace(node: NodeRow, news: NodeRow): void {
  identify(node, news)
  const isOlder = (column: string) => Number(news[column]) < Number(node[column])
  const { public_key: _key, last_heard: _heard, altitude = null, ...rest } = news
  const places = ['latitude', 'longitude', 'precision_bits', 'position_time', 'position_channel']
  const isOther = news['latitude'] !== undefined && news['position_channel'] !== node['position_channel']
  const wasOlder = isOlder('position_time')
  const measured = [...Object.values(METRIC_COLUMNS), 'device_metrics_time']
  for (const [column, value] of Object.entries(rest)) {
    const known = node[column] ?? null
    if (IDENTITY.includes(column)) continue
    if (places.includes(column) && isOlder('position_time')) continue
    if (measured.includes(column) && isOlder('device_metrics_time')) {
      node[column] = known ?? value
      continue
    }
    const isWhole = ['precision_bits', 'position_time', 'position_channel', 'via_mqtt'].includes(column)
    node[column] = isWhole ? value : (value ?? known)
  }
  // An altitude that came on another channel is not for the readers of this one.
  if (!wasOlder) node['altitude'] = altitude ?? (isOther ? null : node['altitude']) ?? null
}

/** The memory of a radio replaces what is older, and fills gaps. */
function remember(node: NodeRow, news: NodeRow): void {
  const isNewer = (column: string) => {
    const time = news[column] ?? null
    return time !== null && Number(time) > Number(node[column])
  }
  const heard = news['last_heard'] ?? null
  const isLatest = heard !== null && Number(heard) >= Number(node['last_heard'])
  const isLaterMeasured = isNewer('device_metrics_time')
  if (news['latitude'] !== undefined && (node['latitude'] === null || isNewer('position_time'))) {
    for (const column of ['latitude', 'longitude', 'altitude', 'precision_bits', 'position_time', 'position_channel'])
      node[column] = news[column] ?? null
  }
  const fill = (columns: readonly string[], isPreferred: boolean) => {
    for (const column of columns) {
      const [told, known] = [news[column] ?? null, node[column] ?? null]
      node[column] = isPreferred ? (told ?? known) : (known ?? told)
    }
  }
  fill(Object.values(METRIC_COLUMNS), isLaterMeasured)
  if (isLaterMeasured) node['device_metrics_time'] = news['device_metrics_time'] ?? null
  fill(['hops_away', 'channel', 'snr', 'rssi'], isLatest)
  if (isLatest) node['via_mqtt'] = news['via_mqtt'] ?? 0
  identify(node, news, isLatest || heard === null || node['is_local'] === 1)
}

function logged(sent: Sent, arrival: Arrival, at: number, isReplayed: boolean): Row {
  const { from, to, id, channel, port, logged: payload } = sent
  const { rxSnr, rxRssi, hopLimit, viaMqtt } = arrival
  const way = { rxSnr, rxRssi, hopsAway: hopsOf(arrival), hopLimit, viaMqtt: Number(viaMqtt) }
  return { t: at, packetId: id, from, to, channel, port, ...way, replayed: Number(isReplayed), payload }
}
