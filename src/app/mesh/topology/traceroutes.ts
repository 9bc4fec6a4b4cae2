import { and, desc, eq, getTableColumns, gte, isNotNull, isNull, lt, or, sql } from 'drizzle-orm'
import * as z from 'zod'
import { traceroutes } from '../../../db/schema.ts'
import { filtersOf } from '../../../db/filters.ts'
import { prepareShapes, rawRows } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Reader } from '../../base/context.ts'
import {
  ofVisibleNodes,
  onVisibleChannel,
  seesEverything,
  seesNodes,
  type View,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { type Range, rangeOf, walkBack } from '../../search/walk.ts'

const hops = z.array(z.int().nullable()).describe('Nodes between the ends; null: the node did not report its number')
const signal = z.array(z.number().nullable()).describe('dB of each hop, so one more than nodes; null: unknown')

type Hops = z.infer<typeof hops>
type Signal = z.infer<typeof signal>
type Route = { readonly route: Hops; readonly snrTowards: Signal; readonly routeBack: Hops; readonly snrBack: Signal }

export const tracerouteSchema = z
  .object({
    id: z.int(),
    requestId: z.int().describe('Packet id of the request'),
    fromNodeNum: nodeNumField,
    fromNodeId: nodeIdField,
    toNodeNum: nodeNumField,
    toNodeId: nodeIdField,
    timestamp: timeField,
    answeredAt: timeField.nullable(),
    state: z.enum(DELIVERY_STATES).describe('delivered: a reply has arrived'),
    routingError: z.string().nullable(),
    notice: z.string().optional().describe('The message of the radio that sent the request'),
    route: hops.nullable().describe('Null until a reply arrives'),
    snrTowards: signal.nullable(),
    routeBack: hops.nullable().describe('Empty: the reply had no route back'),
    snrBack: signal.nullable(),
    previous: z
      .object({ route: hops, routeBack: hops, answeredAt: timeField })
      .nullish()
      .describe(
        'The answered traceroute before it from the same node to the same node; null: there is none among the 200 to that node before it. Absent without a reply',
      ),
    requestedBy: z.string().nullable().describe('Username of the requester; null: overheard'),
    radio: z.string().nullable().describe('Name of the radio that sent the request; null: overheard'),
  })
  .meta({ id: 'Traceroute', description: 'A request for the route to a node, and its reply' })
export type Traceroute = z.infer<typeof tracerouteSchema>

export const traceroutePageSchema = z.object({
  traceroutes: z.array(tracerouteSchema),
  nextBefore: z
    .int()
    .nullable()
    .describe(
      '`before` of the next page; null: the last one. With a filter, a page may have fewer traceroutes than `limit` although more follow',
    ),
})
export type TraceroutePage = z.infer<typeof traceroutePageSchema>

/** The fields that `publicTraceroute` needs. */
export const tracerouteColumns = {
  ...getTableColumns(traceroutes),
  radio: sql<string | null>`iif(${traceroutes.requestedBy} is null, null,
    (select name from sources where sources.id = ${traceroutes.sourceId}))`,
}

/** Whether this service requested it. */
export const ORIGINS = ['own', 'overheard'] as const

export type TracerouteFilters = {
  readonly limit: number
  /** Id of a traceroute: only earlier ones. */
  readonly before?: number | undefined
  /** One of its ends. */
  readonly node?: number | undefined
  /** The other end. */
  readonly with?: number | undefined
  readonly origin?: (typeof ORIGINS)[number] | undefined
  /** Only those whose route is known, or only the others. */
  readonly answered?: boolean | undefined
  /** Times in milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

const { fromNodeNum: from, toNodeNum: to, id, requestedBy, route: way } = traceroutes
const value = sql.placeholder
const isEnd = (name: string) => or(eq(from, value(name)), eq(to, value(name)))

const filters = filtersOf({
  from: gte(id, value('from')),
  before: lt(id, value('before')),
  since: gte(traceroutes.timestamp, value('since')),
  until: lt(traceroutes.timestamp, value('until')),
  node: isEnd('node'),
  with: isEnd('with'),
  own: isNotNull(requestedBy),
  overheard: isNull(requestedBy),
  true: isNotNull(way),
  false: isNull(way),
  seen: and(onVisibleChannel(traceroutes.channel), ofVisibleNodes(from, to)),
})

/** A query for each set of filters. */
const pages = prepareShapes((db, shape) =>
  db
    .select({ ...tracerouteColumns, previous: previousOf(shape.endsWith('seen')) })
    .from(traceroutes)
    .where(filters.whereOf(shape))
    .orderBy(desc(id))
    .limit(value('limit'))
    .prepare(),
)

/** A page as JSON, newest first, as far as the viewer may see it. Hidden nodes on the route have no number. */
export async function listTraceroutes(
  { store, viewer: { view } }: Reader,
  { limit, origin, answered, ...by }: TracerouteFilters,
): Promise<string> {
  const { before, since, until } = by
  const seen = seesEverything(view) ? undefined : true
  const shapeOf = (asked: object) => filters.shapeOf({ ...asked, [origin ?? '']: true, [String(answered)]: true, seen })
  const read = (range: Range | null, count: number) => {
    const asked = { ...by, ...range }
    return rawRows<RawTraceroute>(pages(store, shapeOf(asked)), { ...asked, ...visibleValues(view), limit: count })
  }
  // One more than requested, which shows whether there is a next page.
  // Ends and the order of the ids have indexes; with anything else a page ends after a bounded amount of work.
  const isRare = (by.node ?? by.with) === undefined && (origin ?? answered) !== undefined
  const isSearch = isRare || (since ?? until) !== undefined
  const all = isSearch ? await rangeOf(store, 'traceroutes', before) : null
  const { found: rows, seenFrom } =
    all === null
      ? { found: await read(null, limit + 1), seenFrom: 0 }
      : await walkBack({
          store,
          ...all,
          limit: limit + 1,
          most: MAX_READ,
          read: async (range, count) => read(range, count),
        })
  const shown = rows.slice(0, limit)
  const rest = all !== null && seenFrom > all.from ? seenFrom : null
  const next = rows.length > limit ? (shown.at(-1)?.[0] ?? null) : rest
  return `{"traceroutes":[${shown.map((row) => tracerouteJson(row, view)).join(',')}],"nextBefore":${next}}`
}

/** The same as objects, for what goes on with them. */
export async function readTraceroutes(reader: Reader, filters: TracerouteFilters): Promise<readonly Traceroute[]> {
  const page: TraceroutePage = JSON.parse(await listTraceroutes(reader, filters))
  return page.traceroutes
}

/** Traceroutes that one request reads if no index finds them. */
const MAX_READ = 100_000

/** Traceroutes to the same node that are searched for the one before. */
const MAX_BEFORE = 200

/**
 * The answered traceroute before a row with the same ends, as JSON, if the view sees its channel. Only the latest to the
 * node are looked at, because anybody on the mesh can make up any number of them.
 */
function previousOf(isNarrow: boolean) {
  const isSeen = isNarrow ? onVisibleChannel(sql`p.channel`) : sql`true`
  const first = sql`coalesce((select b.id from traceroutes b indexed by traceroutes_answered
    where b.to_node_num = traceroutes.to_node_num and b.id < traceroutes.id
    order by b.id desc limit 1 offset ${sql.raw(String(MAX_BEFORE))}), 0)`
  // Entries of the index are in the order of the ids, so the first one that fits is the latest.
  return sql<string | null>`iif(traceroutes.route is null, null, (
    select json_object('route', p.route -> 'route', 'routeBack', p.route -> 'routeBack', 'answeredAt', coalesce(p.answered_at, p.timestamp))
    from traceroutes p indexed by traceroutes_answered
    where p.to_node_num = traceroutes.to_node_num and p.from_node_num = traceroutes.from_node_num
      and p.id < traceroutes.id and p.id > ${first} and p.route is not null and ${isSeen}
    order by p.id desc limit 1))`
}

const NO_ROUTE = { route: null, snrTowards: null, routeBack: null, snrBack: null } as const

type Row = Omit<typeof traceroutes.$inferSelect, 'sourceId' | 'channel'> & { readonly radio: string | null }

/** A row of `pages` as it is stored. */
type RawTraceroute = readonly [
  id: number,
  sourceId: number | null,
  requestId: number,
  fromNodeNum: number,
  toNodeNum: number,
  timestamp: number,
  answeredAt: number | null,
  state: Row['state'],
  routingError: string | null,
  notice: string | null,
  route: string | null,
  requestedBy: string | null,
  channel: number | null,
  radio: string | null,
  previous: string | null,
]

function tracerouteJson(row: RawTraceroute, view: View): string {
  const [route, previous] = [row[10], row[14]]
  const head = headOf({
    id: row[0],
    requestId: row[2],
    fromNodeNum: row[3],
    toNodeNum: row[4],
    timestamp: row[5],
    answeredAt: row[6],
    state: row[7],
    routingError: row[8],
    notice: row[9],
    requestedBy: row[11],
    radio: row[13],
  })
  // Whoever sees every node gets what is stored, which has no other fields.
  const json = (stored: string) => (view.hidden.size === 0 ? stored : JSON.stringify(shownRoute(stored, view)))
  const way = route === null ? JSON.stringify(NO_ROUTE) : json(route)
  const before = route === null ? '' : `,"previous":${previous === null ? null : json(previous)}`
  return `${JSON.stringify(head).slice(0, -1)},${way.slice(1, -1)}${before}}`
}

/** A row as the API shows it to this view. */
export function publicTraceroute(row: Row, view: View): Traceroute {
  return { ...headOf(row), ...(row.route === null ? NO_ROUTE : shownRoute(row.route, view)) }
}

function headOf({ notice, ...row }: Omit<Row, 'route'>): Omit<Traceroute, keyof Route> {
  return {
    id: row.id,
    requestId: row.requestId,
    fromNodeNum: row.fromNodeNum,
    fromNodeId: formatNodeId(row.fromNodeNum),
    toNodeNum: row.toNodeNum,
    toNodeId: formatNodeId(row.toNodeNum),
    timestamp: row.timestamp,
    answeredAt: row.answeredAt,
    state: row.state,
    routingError: row.routingError,
    ...(notice !== null && { notice }),
    requestedBy: row.requestedBy,
    radio: row.radio,
  }
}

/** What is stored about a way, with the nodes on it that the view shows. */
function shownRoute(json: string, view: View): Route {
  const way: Route = JSON.parse(json)
  const shown = (hop: number | null) => (seesNodes(view, [hop]) ? hop : null)
  return { ...way, route: way.route.map(shown), routeBack: way.routeBack.map(shown) }
}
