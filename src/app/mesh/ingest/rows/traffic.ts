import { sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { messages, neighbors, receptions, traceroutes, waypoints } from '../../../../db/schema.ts'
import { EARSHOT_MS, isLocalNode } from '../../radios/source-table.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { type Difference, DIFFERENCES } from '../../../../shared/mesh/packets.ts'
import { type PacketRow, writeLog } from './log.ts'
import { type ProvenRow, writeProven } from '../duplicates/proven-packets.ts'

/** Further receptions of a message are not stored. */
const MAX_RECEPTIONS = 100

/** One reception of a message, with the text of that copy. `gateway` 0: the radio of the source itself. */
export type ReceptionRow = {
  readonly text: string
  readonly to: number
  readonly replyId: number | null
  readonly emoji: boolean
  readonly source: string
  readonly fromNodeNum: number
  readonly packetId: number
  readonly gateway: number
  readonly t: number
  readonly rxSnr: number | null
  readonly rxRssi: number | null
  readonly hopsAway: number | null
}

/** An answer to a traceroute that `fromNodeNum` requested. `route` is a `Route` as JSON. */
export type RouteRow = {
  readonly source: string
  readonly requestId: number
  readonly fromNodeNum: number
  readonly toNodeNum: number
  readonly answeredAt: number
  readonly route: string
  /** The channel of the packet; see `UNKNOWN_CHANNEL`. The same applies below. */
  readonly channel: number | null
}

export type NeighborRow = {
  readonly nodeNum: number
  readonly neighborNum: number
  readonly snr: number
  readonly t: number
  readonly channel: number | null
  /** One of our own radios heard the report, or it was signed. */
  readonly heard: boolean
}

export type WaypointRow = {
  readonly id: number
  readonly fromNodeNum: number
  readonly t: number
  readonly name: string
  readonly description: string
  readonly icon: string | null
  readonly latitude: number
  readonly longitude: number
  readonly expiresAt: number | null
  readonly lockedTo: number | null
  readonly channel: number | null
  readonly heard: boolean
  readonly rest: string
}

/** The changes of a batch besides nodes, their histories and messages. */
export type Traffic = {
  readonly receptions: ReceptionRow[]
  readonly routes: RouteRow[]
  /** By the node that reports its neighbours. */
  readonly neighbors: Map<
    number,
    { readonly t: number; readonly heard: boolean; readonly rows: readonly NeighborRow[] }
  >
  readonly waypoints: WaypointRow[]
  readonly packets: PacketRow[]
  readonly proven: ProvenRow[]
}

const named = (...names: string[]): Record<string, SQL> => Object.fromEntries(names.map((name) => [name, field(name)]))

const OF_SOURCE = sql`cross join sources s on s.name = ${field('source')}`

const MESSAGE_COLUMNS = {
  text: 'text',
  to: 'to_node_num',
  replyId: 'reply_id',
  emoji: 'emoji',
} as const satisfies Record<Difference, string>

const DIFFERS = sql`nullif(ltrim(${sql.join(
  DIFFERENCES.map(
    (name) => sql`iif(m.${sql.raw(MESSAGE_COLUMNS[name])} is not ${field(name)}, ${sql.raw(`',${name}'`)}, '')`,
  ),
  sql` || `,
)}, ','), '')`

/** The message itself has it: it has a row only if that says something else now, and still when and how it came first. */
const IS_FIRST = sql`(m.first_reception is not null and m.first_reception ->> 0 = s.id
  and m.first_reception ->> 1 = ${field('gateway')})`
const atFirst = (place: number, name: string) =>
  sql`iif(${IS_FIRST}, m.first_reception ->> ${sql.raw(String(place))}, ${field(name)})`

const RECEPTION_VALUES = {
  t: atFirst(2, 't'),
  rxSnr: atFirst(3, 'rxSnr'),
  rxRssi: atFirst(4, 'rxRssi'),
  hopsAway: atFirst(5, 'hopsAway'),
  messageId: sql`m.id`,
  sourceId: sql`s.id`,
  gateway: field('gateway'),
  differs: DIFFERS,
}

const ROUTE_VALUES = {
  ...named('requestId', 'fromNodeNum', 'toNodeNum', 'answeredAt', 'route', 'channel'),
  id: sql`null`,
  sourceId: sql`s.id`,
  timestamp: field('answeredAt'),
  state: sql`'delivered'`,
  routingError: sql`null`,
  requestedBy: sql`null`,
  notice: sql`null`,
}

const EARSHOT = sql.raw(String(EARSHOT_MS))

const NEIGHBOR_VALUES = named('nodeNum', 'neighborNum', 'snr', 't', 'channel', 'heard')

const WAYPOINT_VALUES = {
  ...named('id', 'fromNodeNum', 't', 'name', 'description', 'icon'),
  ...named('latitude', 'longitude', 'expiresAt', 'lockedTo', 'channel', 'heard', 'rest'),
}

// Late or repeated data never replaces newer data.
const IS_LATEST_WORD = sql`not exists (select 1 from neighbors x
  where x.node_num = ${field('nodeNum')} and (x.t > ${field('t')}
    or (x.heard and not ${field('heard')} and x.t > ${field('t')} - ${EARSHOT})))`

// The limit applies to gateways only, because gateways can be made up; our radios cannot.
const IS_HEARD_BY_FEW = sql`(${field('gateway')} = 0
  or (select count(*) from receptions x where x.message_id = m.id) < ${sql.raw(String(MAX_RECEPTIONS))})`

const IS_NOT_FIRST = sql`not (${IS_FIRST} and ${DIFFERS} is null)`

/** A sender beyond the limit of new nodes per hour gets no row and no place on the map. */
const OF_SENDER = (nodeNum: string) => sql`cross join nodes n on n.node_num = ${field(nodeNum)}`

// Our radios receive the answers to their own requests. On a broker, anybody can make up an answer.
const OF_ANSWER = sql`${OF_SOURCE} and (s.local_node_num is not null or not ${isLocalNode(field('fromNodeNum'))})`

const queries = prepareOnce((db) => ({
  receptions: prepareJsonInsert(db, receptions, {
    values: RECEPTION_VALUES,
    from: sql`${OF_SOURCE} cross join messages m
      on m.from_node_num = ${field('fromNodeNum')} and m.packet_id = ${field('packetId')} and ${IS_HEARD_BY_FEW}
      and ${IS_NOT_FIRST}`,
    onConflict: sql`on conflict do update set differs = excluded.differs
      where differs is null and excluded.differs is not null`,
  }),
  conflicts: db
    .update(messages)
    .set({ conflicting: true })
    .where(
      sql`not conflicting and (from_node_num, packet_id) in
          (select value ->> 'fromNodeNum', value ->> 'packetId' from json_each(${sql.placeholder('copies')}))
        and exists (select 1 from receptions x where x.message_id = messages.id and x.differs is not null)`,
    )
    .prepare(),
  routes: prepareJsonInsert(db, traceroutes, {
    values: ROUTE_VALUES,
    from: OF_ANSWER,
    // A node answers once, so a different later answer, or an answer in another node's name, is forged.
    onConflict: sql`on conflict (from_node_num, request_id) do update set
      route = excluded.route, answered_at = excluded.answered_at, state = 'delivered', routing_error = null,
      channel = excluded.channel
      where route is null and to_node_num = excluded.to_node_num`,
  }),
  forgetNeighbors: db
    .delete(neighbors)
    .where(
      sql`(node_num, neighbor_num) in (select x.node_num, x.neighbor_num
        from json_each(${sql.placeholder('reported')}) k cross join neighbors x on x.node_num = k.value ->> 'nodeNum'
        where x.t <= k.value ->> 't' and (k.value ->> 'heard' or not x.heard or x.t <= (k.value ->> 't') - ${EARSHOT}))`,
    )
    .prepare(),
  neighbors: prepareJsonInsert(db, neighbors, {
    values: NEIGHBOR_VALUES,
    from: sql`${OF_SENDER('nodeNum')} and ${IS_LATEST_WORD}`,
    onConflict: sql`on conflict (node_num, neighbor_num) do update set snr = excluded.snr, t = excluded.t,
      channel = excluded.channel, heard = excluded.heard`,
  }),
  // Only the owner of a locked waypoint can change it; anybody can change a deleted one.
  waypoints: prepareJsonInsert(db, waypoints, {
    values: WAYPOINT_VALUES,
    from: OF_SENDER('fromNodeNum'),
    onConflict: sql`on conflict (id) do update set from_node_num = excluded.from_node_num, t = excluded.t,
      name = excluded.name, description = excluded.description, icon = excluded.icon, latitude = excluded.latitude,
      longitude = excluded.longitude, expires_at = excluded.expires_at, locked_to = excluded.locked_to,
      channel = excluded.channel, heard = excluded.heard, rest = excluded.rest
      where excluded.t >= t and (excluded.heard or not waypoints.heard or t <= excluded.t - ${EARSHOT})
        and (locked_to is null or locked_to = excluded.from_node_num or waypoints.expires_at <= excluded.t)`,
  }),
  // To delete a waypoint, its sender sets an end in the past.
  expireWaypoints: db
    .delete(waypoints)
    .where(sql`expires_at <= ${sql.placeholder('now')}`)
    .prepare(),
}))

function keysOf(copies: readonly ReceptionRow[]): string {
  return JSON.stringify(copies.map(({ fromNodeNum, packetId }) => ({ fromNodeNum, packetId })))
}

/**
 * Statements that store traffic; sources, nodes and messages exist already, or are created earlier in the same step.
 * `now` in milliseconds.
 */
export function writeTraffic(store: Store, traffic: Traffic, now: number): Statement[] {
  const prepared = queries(store)
  const { receptions: copies, routes, waypoints: places, packets: log } = traffic
  const reported = [...traffic.neighbors].map(([nodeNum, { t, heard }]) => ({ nodeNum, t, heard }))
  const links = [...traffic.neighbors.values()].flatMap(({ rows }) => rows)
  const saidAt = places.at(-1)?.t
  return [
    ...(copies.length > 0 ? [prepared.receptions(copies), bind(prepared.conflicts, { copies: keysOf(copies) })] : []),
    ...(routes.length > 0 ? [prepared.routes(routes)] : []),
    ...(reported.length > 0 ? [bind(prepared.forgetNeighbors, { reported: JSON.stringify(reported) })] : []),
    ...(links.length > 0 ? [prepared.neighbors(links)] : []),
    ...(saidAt === undefined ? [] : [prepared.waypoints(places), bind(prepared.expireWaypoints, { now: saidAt })]),
    ...writeLog(store, log),
    ...writeProven(store, traffic.proven, now),
  ]
}
