import { and, desc, eq, getTableColumns, gte, isNotNull, isNull, lt, or, sql } from 'drizzle-orm'
import * as z from 'zod'
import { traceroutes } from '../../../db/schema.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Reader } from '../../base/context.ts'
import { ofNodesSeenBy, onChannelSeenBy, seesEverything, seesNodes, type View } from '../../accounts/access/visible.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
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

/** Newest first, as far as the viewer may see them. Hidden nodes on the route have no number. */
export async function listTraceroutes(
  { store, viewer: { view } }: Reader,
  { limit, before, node, with: other, origin, answered, since, until }: TracerouteFilters,
): Promise<z.infer<typeof traceroutePageSchema>> {
  const { fromNodeNum, toNodeNum, id, channel } = traceroutes
  const isSeen = seesEverything(view)
    ? undefined
    : and(onChannelSeenBy(channel, view), ofNodesSeenBy(view, fromNodeNum, toNodeNum))
  const isEnd = (nodeNum: number) => or(eq(fromNodeNum, nodeNum), eq(toNodeNum, nodeNum))
  const read = (range: Range | null, count: number) =>
    store.db
      .select({ ...tracerouteColumns, previous: previousOf(view) })
      .from(traceroutes)
      .where(
        and(
          range === null ? undefined : and(gte(id, range.from), lt(id, range.before)),
          before === undefined ? undefined : lt(id, before),
          since === undefined ? undefined : gte(traceroutes.timestamp, since),
          until === undefined ? undefined : lt(traceroutes.timestamp, until),
          node === undefined ? undefined : isEnd(node),
          other === undefined ? undefined : isEnd(other),
          origin === undefined ? undefined : (origin === 'own' ? isNotNull : isNull)(traceroutes.requestedBy),
          answered === undefined ? undefined : (answered ? isNotNull : isNull)(traceroutes.route),
          isSeen,
        ),
      )
      .orderBy(desc(id))
      .limit(count)
      .all()
  // One more than requested, which shows whether there is a next page.
  // Ends and the order of the ids have indexes; with anything else a page ends after a bounded amount of work.
  const isRare = (node ?? other) === undefined && (origin ?? answered) !== undefined
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
  return {
    traceroutes: shown.map(({ previous, ...row }) => ({
      ...publicTraceroute(row, view),
      ...(row.route !== null && { previous: shownPrevious(previous, view) }),
    })),
    nextBefore: rows.length > limit ? (shown.at(-1)?.id ?? null) : rest,
  }
}

/** Traceroutes that one request reads if no index finds them. */
const MAX_READ = 100_000

/** Traceroutes to the same node that are searched for the one before. */
const MAX_BEFORE = 200

const previousSchema = z.object({ route: z.string(), answeredAt: z.int() })

/**
 * The answered traceroute before a row with the same ends, as JSON, if the view sees its channel. Only the latest to the
 * node are looked at, because anybody on the mesh can make up any number of them.
 */
function previousOf(view: View) {
  const isSeen = seesEverything(view) ? sql`true` : onChannelSeenBy(sql`p.channel`, view)
  const first = sql`coalesce((select b.id from traceroutes b indexed by traceroutes_answered
    where b.to_node_num = traceroutes.to_node_num and b.id < traceroutes.id
    order by b.id desc limit 1 offset ${sql.raw(String(MAX_BEFORE))}), 0)`
  // Entries of the index are in the order of the ids, so the first one that fits is the latest.
  return sql<string | null>`iif(traceroutes.route is null, null, (
    select json_object('route', p.route, 'answeredAt', coalesce(p.answered_at, p.timestamp))
    from traceroutes p indexed by traceroutes_answered
    where p.to_node_num = traceroutes.to_node_num and p.from_node_num = traceroutes.from_node_num
      and p.id < traceroutes.id and p.id > ${first} and p.route is not null and ${isSeen}
    order by p.id desc limit 1))`
}

function shownPrevious(json: string | null, view: View): Traceroute['previous'] {
  if (json === null) return null
  const { route: way, answeredAt } = previousSchema.parse(JSON.parse(json))
  const { route, routeBack } = shownRoute(way, view)
  return { route, routeBack, answeredAt }
}

const NO_ROUTE = { route: null, snrTowards: null, routeBack: null, snrBack: null } as const

type Row = typeof traceroutes.$inferSelect & { readonly radio: string | null }

/** A row as the API shows it to this view. */
export function publicTraceroute(row: Row, view: View): Traceroute {
  const { id, requestId, fromNodeNum, toNodeNum, timestamp, answeredAt, state, routingError, requestedBy, radio } = row
  const { notice } = row
  return {
    id,
    requestId,
    fromNodeNum,
    fromNodeId: formatNodeId(fromNodeNum),
    toNodeNum,
    toNodeId: formatNodeId(toNodeNum),
    timestamp,
    answeredAt,
    state,
    routingError,
    ...(notice === null ? {} : { notice }),
    ...(row.route === null ? NO_ROUTE : shownRoute(row.route, view)),
    requestedBy,
    radio,
  }
}

function shownRoute(json: string, view: View): z.infer<typeof routeSchema> {
  const way = routeSchema.parse(JSON.parse(json))
  const shown = (hop: number | null) => (seesNodes(view, [hop]) ? hop : null)
  return { ...way, route: way.route.map(shown), routeBack: way.routeBack.map(shown) }
}
