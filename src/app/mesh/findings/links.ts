import { and, desc, eq, gte, isNotNull, sql } from 'drizzle-orm'
import * as z from 'zod'
import { neighbors, nodeReceivers, nodes, sources, traceroutes } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
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
const MAX_LINKS = 20_000

const hops = z.array(z.number().nullable())
const waySchema = z.object({ route: hops, snrTowards: hops, routeBack: hops, snrBack: hops })

/** Who hears whom, by reports of neighbours, by traceroutes, and by what receivers heard directly; without hidden nodes. */
export async function readLinks(store: Store, now: number, pause: Pause): Promise<Link[]> {
  const since = now - LINKS_MS
  const reported = await store.db
    .select({
      from: neighbors.neighborNum,
      to: neighbors.nodeNum,
      snr: neighbors.snr,
      t: neighbors.t,
      channel: neighbors.channel,
    })
    .from(neighbors)
    .where(gte(neighbors.t, since))
    .orderBy(desc(neighbors.t))
    .limit(MAX_LINKS)
    .all()
  await pause()
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
  const heard = await store.db
    .select({
      from: nodeReceivers.nodeNum,
      to: sql<number | null>`iif(${nodeReceivers.gateway} = 0, ${sources.localNodeNum}, ${nodeReceivers.gateway})`,
      snr: nodeReceivers.snr,
      t: nodeReceivers.lastAt,
    })
    .from(nodeReceivers)
    .innerJoin(sources, eq(sources.id, nodeReceivers.sourceId))
    .where(and(sql`${nodeReceivers.direct} > 0`, gte(nodeReceivers.lastAt, since)))
    .limit(MAX_LINKS)
    .all()
  await pause()
  const hidden = await store.db.select({ nodeNum: nodes.nodeNum }).from(nodes).where(eq(nodes.isHidden, true)).all()
  const isHidden = new Set(hidden.map(({ nodeNum }) => nodeNum))
  const all: Link[] = []
  const add = async (links: readonly Link[]) => {
    for (const link of links) {
      if (link.from !== link.to && !isHidden.has(link.from) && !isHidden.has(link.to)) all.push(link)
    }
    await pause()
  }
  await add(reported.map((link) => ({ ...link, isReported: true })))
  await add(ways.flatMap(linksOfWay))
  await add(heard.flatMap(({ to, ...link }) => (to === null ? [] : { ...link, to, channel: null, isReported: false })))
  return all
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
