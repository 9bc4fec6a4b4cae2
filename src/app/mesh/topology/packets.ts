import { and, desc, eq, gt, gte, lt, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { BY_PLACE, hasPages, hasSender, packedWithin } from '../../../db/packet-log.ts'
import { packets } from '../../../db/schema.ts'
import { filtersOf } from '../../../db/filters.ts'
import { prepareShapes, rawRows, type Store } from '../../../db/store.ts'
import type { Reader } from '../../base/context.ts'
import {
  belongsToChannel,
  canReadPacket,
  ofVisibleNodes,
  type PacketPlace,
  seesEverything,
  seesNodes,
  type View,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { enumName } from '../../../meshtastic/enum-name.ts'
import { PortNumSchema } from '../../../meshtastic/gen/ports_pb.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { kindOf } from '../../../meshtastic/payload/payload.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { createBudget, rangeOf, walkBack } from '../../search/walk.ts'

export const packetSchema = z
  .object({
    id: z.int(),
    source: z.string().nullable().describe('The radio or broker that received it'),
    timestamp: timeField,
    packetId: z.int(),
    fromNodeNum: nodeNumField,
    fromNodeId: nodeIdField,
    toNodeNum: nodeNumField,
    toNodeId: nodeIdField,
    gateway: nodeNumField.nullable().describe('Gateway that published it to the broker'),
    channel: z.int().describe('Number as in GET /api/channels; for an undecrypted packet the hash in its header'),
    port: z.int().nullable().describe('Null: it could not be decrypted'),
    portName: z.string().nullable(),
    rxSnr: z.number().nullable(),
    rxRssi: z.int().nullable(),
    hopsAway: z.int().nullable(),
    hopLimit: z.int(),
    viaMqtt: z.boolean(),
    pkiEncrypted: z.boolean(),
    replayed: z.boolean().describe("Replayed from the radio's memory"),
    signed: z.boolean().describe("The sender's signature was verified (firmware 2.8)"),
    spoofSuspected: z
      .boolean()
      .describe(
        "Probably forged: another node seems to have sent it in its sender's name. It is only in the packet log",
      ),
    payload: z
      .looseObject({ kind: z.string() })
      .describe('Decoded payload, without hidden nodes; only its kind if the viewer may not read it'),
  })
  .meta({ id: 'Packet', description: 'An entry of the packet log' })
export type LoggedPacket = z.infer<typeof packetSchema>

export const packetPageSchema = z
  .object({
    packets: z.array(packetSchema),
    nextBefore: z
      .int()
      .nullable()
      .describe(
        '`before` of the next page; null: this is the last one. With a filter, a page may have fewer packets than `limit` although more follow: continue while this is not null',
      ),
  })
  .meta({ id: 'PacketPage' })

export type PacketPage = z.infer<typeof packetPageSchema>

export type PacketFilters = {
  readonly limit: number
  /** Id of a logged packet: only earlier ones. */
  readonly before?: number | undefined
  /** Id of a logged packet: only later ones. */
  readonly after?: number | undefined
  /** Time in milliseconds, inclusive. */
  readonly since?: number | undefined
  /** Time in milliseconds, exclusive. */
  readonly until?: number | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly port?: number | undefined
  /** Of the request: the search ends when its reader has gone. */
  readonly signal?: AbortSignal | undefined
}

const fields = {
  id: packets.id,
  // A join would let SQLite begin at the sources and sort.
  source: sql<string | null>`(select name from sources where sources.id = ${packets.sourceId})`,
  timestamp: packets.t,
  packetId: packets.packetId,
  fromNodeNum: packets.fromNodeNum,
  toNodeNum: packets.toNodeNum,
  gateway: packets.gateway,
  channel: packets.channel,
  port: packets.port,
  rxSnr: packets.rxSnr,
  rxRssi: packets.rxRssi,
  hopsAway: packets.hopsAway,
  hopLimit: packets.hopLimit,
  viaMqtt: packets.viaMqtt,
  pkiEncrypted: packets.pkiEncrypted,
  replayed: packets.replayed,
  trustLevel: packets.trustLevel,
  payload: packets.payload,
}
/** A row of `fields` as it is stored. */
type RawPacket = readonly [
  id: number,
  source: string | null,
  timestamp: number,
  packetId: number,
  fromNodeNum: number,
  toNodeNum: number,
  gateway: number | null,
  channel: number,
  port: number | null,
  rxSnr: number | null,
  rxRssi: number | null,
  hopsAway: number | null,
  hopLimit: number,
  viaMqtt: 0 | 1,
  pkiEncrypted: 0 | 1,
  replayed: 0 | 1,
  trustLevel: typeof packets.$inferSelect.trustLevel,
  payload: string,
]

const value = sql.placeholder

const filters = filtersOf({
  before: lt(packets.id, value('before')),
  after: gt(packets.id, value('after')),
  since: gte(packets.t, value('since')),
  until: lt(packets.t, value('until')),
  from: eq(packets.fromNodeNum, value('from')),
  to: eq(packets.toNodeNum, value('to')),
  port: eq(packets.port, value('port')),
  hidden: ofVisibleNodes(packets.fromNodeNum, packets.toNodeNum),
})

/** A query for each set of filters. */
const rows = prepareShapes((db, shape) =>
  db
    .select(fields)
    .from(packets)
    .where(filters.whereOf(shape))
    .orderBy(desc(packets.id))
    .limit(value('limit'))
    .prepare(),
)

/** What a page of the log must have for each filter, so that it is opened. */
const pageFilters: Readonly<Record<string, SQL>> = {
  since: sql`g.t_last >= ${value('since')}`,
  until: sql`g.t_first < ${value('until')}`,
  from: hasSender(value('from')),
  to: sql`(${value('to')} = ${BROADCAST} or exists (select 1 from json_each(g.receivers) x where x.value = ${value('to')}))`,
  port: sql`exists (select 1 from json_each(g.ports) x where x.value = ${value('port')})`,
}

/** The same of pages, in a range. They are in the order of ids, and no more are opened than are needed. */
const packed = prepareShapes((db, shape) => {
  const opened = and(...shape.split(' ').flatMap((name) => pageFilters[name] ?? []))
  return db
    .select(fields)
    .from(packedWithin(value('first'), value('end'), opened))
    .where(filters.whereOf(shape))
    .orderBy(BY_PLACE)
    .limit(value('limit'))
    .prepare()
})

/**
 * A page as JSON, newest first, and the next cursor. The content of a packet is shown as far as the viewer may read it.
 * A page ends after a bounded amount of work, so it may have fewer packets than `limit` although more follow.
 */
export async function listPackets({ store, viewer }: Reader, { limit, signal, ...by }: PacketFilters): Promise<string> {
  const { view } = viewer
  const asking = { store, view, limit, signal }
  const isPacked = await hasPages(store)
  const { found, seenFrom, lowest } = merged(await findRows(asking, by), isPacked ? await findPacked(asking, by) : null)
  const shown = found.slice(0, limit)
  const next = found.length > limit ? (shown.at(-1)?.[0] ?? null) : seenFrom > lowest ? seenFrom : null
  const seesPayloads = seesEverything(view) && viewer.permissions.messages.read && viewer.permissions.nodes.read
  return `{"packets":[${shown.map((row) => packetJson(viewer, row, seesPayloads)).join(',')}],"nextBefore":${next}}`
}

type Asking = Pick<PacketFilters, 'limit' | 'signal'> & { readonly store: Store; readonly view: View }
type Filters = Omit<PacketFilters, 'limit' | 'signal'>

/** The latest rows, one more than asked for if there are; none were looked for between `lowest` and `seenFrom`. */
type Search = { readonly found: readonly RawPacket[]; readonly seenFrom: number; readonly lowest: number }

function valuesOf(view: View, by: Filters) {
  const shape = filters.shapeOf({ ...by, hidden: view.hidden.size === 0 ? undefined : view.hidden })
  return { shape, values: { ...by, ...visibleValues(view) } }
}

async function findRows({ store, view, limit, signal }: Asking, by: Filters): Promise<Search> {
  const read = (asked: Filters, count: number) => {
    const { shape, values } = valuesOf(view, asked)
    return rawRows<RawPacket>(rows(store, shape), { ...values, limit: count })
  }
  const { since, until, from, to, port } = by
  const isIndexed = (since ?? until ?? to) === undefined && (from === undefined || port === undefined)
  // One more than requested, which shows whether there is a next page.
  const all = isIndexed ? null : await rangeOf(store, 'packets', by.before)
  const lowest = all === null ? 0 : Math.min(all.before, Math.max(all.from, (by.after ?? 0) + 1))
  const { found, seenFrom } =
    all === null
      ? { found: await read(by, limit + 1), seenFrom: lowest }
      : await walkBack({
          store,
          from: lowest,
          before: all.before,
          limit: limit + 1,
          budget: createBudget(signal),
          read: (range, count) => read({ ...by, before: range.before, after: range.from - 1 }, count),
        })
  return { found, seenFrom, lowest }
}

async function findPacked({ store, view, limit, signal }: Asking, by: Filters): Promise<Search> {
  const { shape, values } = valuesOf(view, by)
  const all = await rangeOf(store, 'packet_pages', by.before)
  const lowest = Math.min(all.before, Math.max(all.from, (by.after ?? 0) + 1))
  const walk = await walkBack({
    store,
    from: lowest,
    before: all.before,
    limit: limit + 1,
    budget: createBudget(signal),
    read: ({ from: first, before: end }, count) =>
      rawRows<RawPacket>(packed(store, shape), { ...values, first, end, limit: count }),
  })
  return { ...walk, lowest }
}

/** What was found in both forms, as far as both were searched. */
function merged(plain: Search, pages: Search | null): Search {
  if (pages === null) return plain
  const ended = [plain, pages].filter(({ seenFrom, lowest }) => seenFrom > lowest)
  const seenFrom = ended.reduce((highest, search) => Math.max(highest, search.seenFrom), 0)
  const found = [...plain.found, ...pages.found].filter(([id]) => id >= seenFrom).toSorted((a, b) => b[0] - a[0])
  return { found, seenFrom, lowest: 0 }
}

/** `seesPayload`: the viewer may read whatever a payload contains, so that it is shown as it is stored. */
function packetJson(viewer: Reader['viewer'], row: RawPacket, seesPayload: boolean): string {
  const [id, source, timestamp, packetId, fromNodeNum, toNodeNum, gateway, channel, port, rxSnr, rxRssi] = row
  const [pkiEncrypted, trustLevel, payload] = [row[14] === 1, row[16], row[17]]
  const place = { channel, from: fromNodeNum, to: toNodeNum, pkiEncrypted, isOwn: trustLevel === 'own' }
  const packet: Omit<LoggedPacket, 'payload'> = {
    id,
    source,
    timestamp,
    packetId,
    fromNodeNum,
    fromNodeId: formatNodeId(fromNodeNum),
    toNodeNum,
    toNodeId: toNodeNum === BROADCAST ? EVERYBODY : formatNodeId(toNodeNum),
    gateway: seesNodes(viewer.view, [gateway]) ? gateway : null,
    channel,
    port,
    portName: port === null ? null : enumName(PortNumSchema, port),
    rxSnr,
    rxRssi,
    hopsAway: row[11],
    hopLimit: row[12],
    viaMqtt: row[13] === 1,
    pkiEncrypted,
    replayed: row[15] === 1,
    signed: trustLevel === 'signed',
    spoofSuspected: trustLevel === 'spoofed',
  }
  const content = seesPayload ? payload : JSON.stringify(showPayload(viewer, payload, place))
  return `${JSON.stringify(packet).slice(0, -1)},"payload":${content}}`
}

const EVERYBODY = formatNodeId(BROADCAST)

const payloadSchema = z.looseObject({ kind: z.string() })

/** The repeated text of a channel. */
const replaySchema = z.object({ storeForward: z.object({ replay: z.object({ isDirect: z.literal(false) }) }) })

function showPayload(
  { permissions, view }: Reader['viewer'],
  json: string,
  { isOwn, ...place }: Omit<PacketPlace, 'isOfChannel'> & { readonly isOwn: boolean },
): LoggedPacket['payload'] {
  const payload = payloadSchema.parse(JSON.parse(json))
  const { about, mayBeOfItself } = kindOf(payload.kind)
  // Contents of messages need the permission to read messages, contents about nodes the permission to read nodes.
  const isPermitted = about === null || permissions[about].read
  // Nobody here could decrypt it, so there is nothing to read.
  if (payload.kind === 'encrypted') return payload
  const replay = replaySchema.safeParse(payload)
  const isOfChannel = belongsToChannel(payload.kind, replay.success)
  const isSeen = canReadPacket(view, { ...place, isOfChannel }, isOwn && mayBeOfItself === true)
  return isPermitted && isSeen ? withoutHidden(view, payload) : { kind: payload.kind }
}

const hops = z.array(z.int().nullable())
const namingSchema = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('traceroute'), route: z.looseObject({ route: hops, routeBack: hops }) }),
  z.looseObject({
    kind: z.literal('neighborinfo'),
    nodeNum: z.int(),
    neighbors: z.array(z.looseObject({ nodeNum: z.int() })),
  }),
  z.looseObject({ kind: z.literal('waypoint'), waypoint: z.looseObject({ lockedTo: z.int().nullable() }) }),
])
/** The kinds of payload that name other nodes. */
const NAMING: ReadonlySet<string> = new Set(namingSchema.options.map(({ shape }) => shape.kind.value))

/** Hidden nodes have no number in it, as in the lists of routes, neighbours and waypoints. */
function withoutHidden(view: View, payload: LoggedPacket['payload']): LoggedPacket['payload'] {
  if (view.hidden.size === 0 || !NAMING.has(payload.kind)) return payload
  const named = namingSchema.parse(payload)
  const shown = (num: number | null) => (seesNodes(view, [num]) ? num : null)
  switch (named.kind) {
    case 'traceroute': {
      const { route, routeBack } = named.route
      return { ...named, route: { ...named.route, route: route.map(shown), routeBack: routeBack.map(shown) } }
    }
    case 'neighborinfo': {
      const neighbors = named.neighbors.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
      return { ...named, nodeNum: shown(named.nodeNum), neighbors }
    }
    case 'waypoint':
      return { ...named, waypoint: { ...named.waypoint, lockedTo: shown(named.waypoint.lockedTo) } }
    default:
      return named satisfies never
  }
}
