import { and, desc, eq, gte, isNotNull, sql } from 'drizzle-orm'
import * as z from 'zod'
import { neighbors, nodeReceivers, nodes, sources, traceroutes } from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { DAY_MS } from '../../../shared/time.ts'
import type { Pause } from '../../base/pacing/slices.ts'

/** `to` hears `from`. */
export type Link = {
  readonly from: number
  readonly to: number
  /** dB; null: unknown. */
  readonly snr: number | null
  readonly t: number
  /** The channel of the report; null: our own radio or a gateway received it. */
  readonly channel: number | null
  /** `to` itself reports whom it hears. */
  readonly isReported: boolean
}

/** Reports of this time count. */
export const LINKS_MS = 7 * DAY_MS
const MAX_ROUTES = 2000
/** The latest links of each kind that count, and those that are read to find them. */
const MAX_LINKS = 20_000
const MAX_READ = 100_000
const PAGE = 1000

type RawReport = readonly [to: number, from: number, t: number, snr: number, channel: number | null]
type RawReception = readonly [
  from: number,
  sourceId: number,
  t: number,
  snr: number | null,
  gateway: number,
  to: number | null,
]

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  reports: db
    .select({
      to: neighbors.nodeNum,
      from: neighbors.neighborNum,
      t: neighbors.t,
      snr: neighbors.snr,
      channel: neighbors.channel,
    })
    .from(neighbors)
    .where(
      sql`(${neighbors.nodeNum}, ${neighbors.neighborNum}) > (${value('node')}, ${value('neighbor')})
        and ${neighbors.t} >= ${value('since')}`,
    )
    .orderBy(neighbors.nodeNum, neighbors.neighborNum)
    .limit(PAGE)
    .prepare(),
  receptions: db
    .select({
      from: nodeReceivers.nodeNum,
      sourceId: nodeReceivers.sourceId,
      t: nodeReceivers.lastAt,
      snr: nodeReceivers.snr,
      gateway: nodeReceivers.gateway,
      to: sql<number | null>`iif(${nodeReceivers.gateway} = 0, (select ${sources.localNodeNum} from ${sources}
        where ${sources.id} = ${nodeReceivers.sourceId}), ${nodeReceivers.gateway})`,
    })
    .from(nodeReceivers)
    .where(
      sql`(${nodeReceivers.nodeNum}, ${nodeReceivers.sourceId}, ${nodeReceivers.gateway})
          > (${value('node')}, ${value('source')}, ${value('gateway')})
        and ${nodeReceivers.direct} > 0 and ${nodeReceivers.lastAt} >= ${value('since')}`,
    )
    .orderBy(nodeReceivers.nodeNum, nodeReceivers.sourceId, nodeReceivers.gateway)
    .limit(PAGE)
    .prepare(),
}))

const hops = z.array(z.number().nullable())
const waySchema = z.object({ route: hops, snrTowards: hops, routeBack: hops, snrBack: hops })

/** Who hears whom, by reports of neighbours, by traceroutes, and by what receivers heard directly; without hidden nodes. */
export async function readLinks(store: Store, now: number, pause: Pause): Promise<Link[]> {
  const since = now - LINKS_MS
  const reported = await inPages<RawReport>(pause, (last) =>
    rawRows(queries(store).reports, { since, node: last?.[0] ?? -1, neighbor: last?.[1] ?? -1 }),
  )
  const ways = await store.db
    .select({
      from: traceroutes.fromNodeNum,
      to: traceroutes.toNodeNum,
      route: traceroutes.route,
      t: traceroutes.timestamp,
      channel: traceroutes.channel,
    })
    .from(traceroutes)
    .where(and(isNotNull(traceroutes.route), gte(traceroutes.timestamp, since)))
    .orderBy(desc(traceroutes.id))
    .limit(MAX_ROUTES)
    .all()
  await pause()
  const heard = await inPages<RawReception>(pause, (last) =>
    rawRows(queries(store).receptions, {
      since,
      node: last?.[0] ?? -1,
      source: last?.[1] ?? -1,
      gateway: last?.[4] ?? -1,
    }),
  )
  const hidden = await store.db.select({ nodeNum: nodes.nodeNum }).from(nodes).where(eq(nodes.isHidden, true)).all()
  const isHidden = new Set(hidden.map(({ nodeNum }) => nodeNum))
  const all: Link[] = []
  const add = async <Row>(rows: readonly Row[], linksOf: (row: Row) => readonly Link[]) => {
    for (const [index, row] of rows.entries()) {
      for (const link of linksOf(row)) {
        if (link.from !== link.to && !isHidden.has(link.from) && !isHidden.has(link.to)) all.push(link)
      }
      if (index % PAGE === PAGE - 1) await pause()
    }
    await pause()
  }
  await add(reported, ([to, from, t, snr, channel]) => [{ from, to, snr, t, channel, isReported: true }])
  await add(ways, linksOfWay)
  await add(heard, ([from, , t, snr, , to]) =>
    to === null ? [] : [{ from, to, snr, t, channel: null, isReported: false }],
  )
  return all
}

/** Reads page after page, each beginning after the last row of the one before; of very many rows the latest are kept. */
async function inPages<Row extends readonly [unknown, unknown, t: number, ...unknown[]]>(
  pause: Pause,
  readPage: (last: Row | undefined) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const all: Row[] = []
  for (;;) {
    const page = await readPage(all.at(-1))
    all.push(...page)
    await pause()
    if (page.length < PAGE || all.length >= MAX_READ) break
  }
  if (all.length <= MAX_LINKS) return all
  const times = Float64Array.from(all, ([, , t]) => t).toSorted()
  await pause()
  const oldest = times[times.length - MAX_LINKS] ?? 0
  return all.filter(([, , t]) => t >= oldest).slice(0, MAX_LINKS)
}

/** A traceroute with its answer as JSON. */
export type Way = {
  readonly from: number
  readonly to: number
  readonly route: string | null
  readonly t: number
  readonly channel: number | null
}

/** The hops of both directions of a traceroute whose nodes are known. */
export function linksOfWay({ from, to, route: json, t, channel }: Way): Link[] {
  const way = waySchema.safeParse(JSON.parse(json ?? 'null')).data
  if (way === undefined) return []
  const along = (stops: readonly (number | null)[], snr: readonly (number | null)[]) =>
    stops.flatMap((stop, index): Link[] => {
      const next = stops[index + 1] ?? null
      const known = stop === null || next === null ? [] : [{ from: stop, to: next }]
      return known.map((ends) => ({ ...ends, snr: snr[index] ?? null, t, channel, isReported: false }))
    })
  return [
    ...along([from, ...way.route, to], way.snrTowards),
    ...(way.snrBack.length === 0 ? [] : along([to, ...way.routeBack, from], way.snrBack)),
  ]
}
