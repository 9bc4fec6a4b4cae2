import type { SqliteStore } from '../../../src/node/database.ts'
import { MEASUREMENTS } from './measurements.ts'

const QUERIES = {
  nodes: 'select * from nodes order by node_num',
  messages: `select packet_id packetId, from_node_num "from", to_node_num "to", channel, text, reply_id replyId, emoji,
    direction, timestamp, hops_away hopsAway, rx_snr rxSnr, rx_rssi rxRssi, via_mqtt viaMqtt from messages order by id`,
  receptions: `select m.from_node_num "from", m.packet_id packetId, r.gateway, r.t, r.rx_snr rxSnr, r.rx_rssi rxRssi,
    r.hops_away hopsAway from receptions r join messages m on m.id = r.message_id order by m.id`,
  positions: `select node_num nodeNum, t, p.latitude, p.longitude, p.altitude, p.precision_bits precisionBits
    from positions p join nodes n on n.id = p.node_id`,
  telemetry: `select node_num nodeNum, m.name metric, t, v
    from ${MEASUREMENTS} x join nodes n on n.id = x.node_id join metrics m on m.id = x.metric`,
  dirty: `select node_num || ' ' || m.name || ' ' || t
    from telemetry_dirty x join nodes n on n.id = x.node_id join metrics m on m.id = x.metric`,
  packets: `select t, packet_id packetId, from_node_num "from", to_node_num "to", channel, port, rx_snr rxSnr,
    rx_rssi rxRssi, hops_away hopsAway, hop_limit hopLimit, via_mqtt viaMqtt, replayed, payload from packets order by id`,
  traceroutes: `select request_id requestId, from_node_num "from", to_node_num "to", answered_at answeredAt, route, state
    from traceroutes order by id`,
  neighbors: 'select node_num nodeNum, neighbor_num neighborNum, snr, t from neighbors',
  waypoints: `select id, from_node_num "from", t, name, latitude, longitude, locked_to lockedTo from waypoints`,
} as const satisfies Record<string, string>

/** Tables whose order is that of arrival. */
const ORDERED: ReadonlySet<string> = new Set(['messages', 'packets', 'traceroutes'])

/** The contents of a mesh database by table; see `comparable`. */
export function readTables({ sqlite }: SqliteStore): Record<string, unknown[]> {
  const entries = Object.entries(QUERIES).map(([table, query]) => {
    const rows = table === 'dirty' ? sqlite.prepare(query).pluck().all() : sqlite.prepare(query).all()
    return [table, rows.map((row) => (table === 'dirty' ? row : readJson(Object(row))))] as const
  })
  return comparable(Object.fromEntries(entries))
}

/** Each row as one line, whatever the order of its fields; rows are sorted where their order means nothing. */
export function comparable(tables: Readonly<Record<string, readonly unknown[]>>): Record<string, string[]> {
  const entries = Object.entries(tables).map(([table, rows]) => {
    const lines = rows.map((row) => JSON.stringify(inOrder(row)))
    return [table, ORDERED.has(table) ? lines : lines.toSorted((a, b) => (a < b ? -1 : 1))] as const
  })
  return Object.fromEntries(entries)
}

/** Columns of a node that no packet contains directly, and where they are tested. */
const TESTED_ELSEWHERE: ReadonlySet<string> = new Set([
  // The evidence for a node: newcomers.test.ts.
  'days_heard',
  'last_heard_day',
  'heard_by_radio',
  'source_id',
  // The channel of positions and metrics: heard-channel.test.ts.
  'position_channel',
  'metrics_channel',
  // How names, key and position are founded, and who heard the node: authenticity.test.ts and trust.test.ts.
  'key_heard',
  'name_heard',
  'position_heard',
  'metrics_heard',
  'key_confirmed',
  'last_heard_by_radio',
  'last_heard_by_broker',
  'telemetry_time',
  'refused_long_name',
  'refused_short_name',
  'refused_heard',
  // The status, and whether names were altered: status.test.ts.
  'name_altered',
  'status',
  'status_time',
  'status_channel',
  'status_signed',
  'status_heard',
  // Its latest public hearing: packed-rows.test.ts.
  'public_channel',
  'public_heard',
  'public_hops',
  'public_via_mqtt',
  // Counts changes for the cached list: list.test.ts.
  'revision',
])

/** Ids are assigned on arrival. */
function readJson({ id, payload, route, ...all }: Record<string, unknown>): Record<string, unknown> {
  const row = Object.fromEntries(Object.entries(all).filter(([name]) => !TESTED_ELSEWHERE.has(name)))
  return {
    ...row,
    // Only the id of a waypoint comes from the mesh.
    ...('lockedTo' in row ? { id } : {}),
    ...(payload === undefined ? {} : { payload: parse(payload) }),
    ...(route === undefined ? {} : { route: parse(route) }),
  }
}

function parse(json: unknown): unknown {
  return typeof json === 'string' ? JSON.parse(json) : null
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (value === null || typeof value !== 'object') return value
  const sorted = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, each]) => [name, inOrder(each)]))
}
