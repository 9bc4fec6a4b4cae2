import { and, desc, eq, getTableColumns, gte, isNotNull, isNull, lt, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { traceroutes } from '../../../db/schema.ts'
import { prepareShapes, rawRows } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Reader } from '../../base/context.ts'
import {
  ofVisibleNodes,
  onVisibleChannel,
  seesEverything,
  type View,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
import { namesOf } from '../../../shared/names.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { type Range, rangeOf, walkBack } from '../../search/walk.ts'

const hops = z.array(z.int().nullable()).describe('Nodes between the ends; null: the node did not report its number')
const signal = z.array(z.number().nullable()).describe('dB of each hop, so one more than nodes; null: unknown')

const routeSchema = z.object({ route: hops, snrTowards: signal, routeBack: hops, snrBack: signal })

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

const value = sql.placeholder
const { id, fromNodeNum, toNodeNum } = traceroutes
const isEnd = (name: string) => or(eq(fromNodeNum, value(name)), eq(toNodeNum, value(name)))

const CONDITIONS = {
  from: gte(id, value('from')),
  before: lt(id, value('before')),
  since: gte(traceroutes.timestamp, value('since')),
  until: lt(traceroutes.timestamp, value('until')),
  node: isEnd('node'),
  with: isEnd('with'),
  own: isNotNull(traceroutes.requestedBy),
  overheard: isNull(traceroutes.requestedBy),
  answered: isNotNull(traceroutes.route),
  unanswered: isNull(traceroutes.route),
  visible: and(onVisibleChannel(traceroutes.channel), ofVisibleNodes(fromNodeNum, toNodeNum)),
} as const satisfies Record<string, SQL | undefined>
const FILTERS = namesOf(CONDITIONS)

/** A query for each set of filters. */
const pages = prepareShapes((db, shape) => {
  const asked = shape.split(' ')
  const conditions = FILTERS.filter((name) => asked.includes(name)).map((name) => CONDITIONS[name])
  const isSeen = asked.includes('visible') ? onVisibleChannel(sql`p.channel`) : sql`true`
  return db
    .select({ ...tracerouteColumns, previous: previousOf(isSeen) })
    .from(traceroutes)
    .where(and(...conditions))
    .orderBy(desc(id))
    .limit(value('limit'))
    .prepare()
})

/** Newest first, as far as the viewer may see them. Hidden nodes on the route have no number. */
export async function listTraceroutes(
  { store, viewer: { view } }: Reader,
  { limit, origin, answered, ...by }: TracerouteFilters,
): Promise<z.infer<typeof traceroutePageSchema>> {
  const read = (range: Partial<Range>, count: number) => {
    const filters = {
      ...by,
      ...range,
      ...(origin !== undefined && { [origin]: true }),
      ...(answered !== undefined && { [answered ? 'answered' : 'unanswered']: true }),
      ...(!seesEverything(view) && { visible: true }),
    }
    const asked: Partial<Record<string, unknown>> = filters
    const shape = FILTERS.filter((name) => asked[name] !== undefined).join(' ')
    return rawRows<RawTraceroute>(pages(store, shape), { ...filters, ...visibleValues(view), limit: count })
  }
  // One more than requested, which shows whether there is a next page.
  const isRare = (by.node ?? by.with) === undefined && (origin ?? answered) !== undefined
  const isSearch = isRare || (by.since ?? by.until) !== undefined
  const all = isSearch ? await rangeOf(store, 'traceroutes', by.before) : null
  const { found: rows, seenFrom } =
    all === null
      ? { found: await read({}, limit + 1), seenFrom: 0 }
      : await walkBack({ store, ...all, limit: limit + 1, most: MAX_READ, read: (range, count) => read(range, count) })
  const shown = rows.slice(0, limit)
  const rest = all !== null && seenFrom > all.from ? seenFrom : null
  return {
    traceroutes: shown.map((raw) => {
      const row = rowOf(raw)
      const traceroute = publicTraceroute(row, view)
      if (row.route !== null) traceroute.previous = shownPrevious(raw[14], view)
      return traceroute
    }),
    nextBefore: rows.length > limit ? (shown.at(-1)?.[0] ?? null) : rest,
  }
}

function rowOf(raw: RawTraceroute): Row {
  return {
    id: raw[0],
    sourceId: raw[1],
    requestId: raw[2],
    fromNodeNum: raw[3],
    toNodeNum: raw[4],
    timestamp: raw[5],
    answeredAt: raw[6],
    state: raw[7],
    routingError: raw[8],
    notice: raw[9],
    route: raw[10],
    requestedBy: raw[11],
    channel: raw[12],
    radio: raw[13],
  }
}

/** Traceroutes that one request reads if no index finds them. */
const MAX_READ = 100_000

/** Traceroutes to the same node that are searched for the one before. */
const MAX_BEFORE = 200

/**
 * The answered traceroute before a row with the same ends, as JSON, if `isSeen`, a condition on `p`. Only the latest to
 * the node are looked at, because anybody on the mesh can make up any number of them.
 */
function previousOf(isSeen: SQL) {
  // Entries of the index are in the order of the ids, so the first one that fits is the latest.
  return sql<string | null>`iif(traceroutes.route is null, null, (
    select '[' || p.route || ',' || coalesce(p.answered_at, p.timestamp) || ']'
    from (select b.from_node_num, b.route, b.answered_at, b.timestamp, b.channel from traceroutes b indexed by traceroutes_answered
      where b.to_node_num = traceroutes.to_node_num and b.id < traceroutes.id
      order by b.id desc limit ${sql.raw(String(MAX_BEFORE))}) p
    where p.from_node_num = traceroutes.from_node_num and p.route is not null and ${isSeen}
    limit 1))`
}

function shownPrevious(json: string | null, view: View): Traceroute['previous'] {
  if (json === null) return null
  const [way, answeredAt]: readonly [Way, number] = JSON.parse(json)
  const { route, routeBack } = shownWay(way, view)
  return { route, routeBack, answeredAt }
}

/** A row of a page as it is stored. */
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

const NO_ROUTE = { route: null, snrTowards: null, routeBack: null, snrBack: null } as const

type Row = typeof traceroutes.$inferSelect & { readonly radio: string | null }

/** A row as the API shows it to this view. */
export function publicTraceroute(row: Row, view: View): Traceroute {
  const { id: rowId, fromNodeNum: from, toNodeNum: to, notice } = row
  const way = row.route === null ? NO_ROUTE : shownWay(JSON.parse(row.route), view)
  // Spreading the parts into one object would take as long as reading the rows.
  const traceroute: Traceroute = {
    id: rowId,
    requestId: row.requestId,
    fromNodeNum: from,
    fromNodeId: formatNodeId(from),
    toNodeNum: to,
    toNodeId: formatNodeId(to),
    timestamp: row.timestamp,
    answeredAt: row.answeredAt,
    state: row.state,
    routingError: row.routingError,
    route: way.route,
    snrTowards: way.snrTowards,
    routeBack: way.routeBack,
    snrBack: way.snrBack,
    requestedBy: row.requestedBy,
    radio: row.radio,
  }
  if (notice !== null) traceroute.notice = notice
  return traceroute
}

type Way = z.infer<typeof routeSchema>

// As ingest wrote it: a check of each hop would cost more than all other work of a page.
function shownWay({ route, snrTowards, routeBack, snrBack }: Way, { hidden }: View): Way {
  if (hidden.size === 0) return { route, snrTowards, routeBack, snrBack }
  const shown = (hop: number | null) => (hop !== null && hidden.has(hop) ? null : hop)
  return { route: route.map(shown), snrTowards, routeBack: routeBack.map(shown), snrBack }
}
