import { sql } from 'drizzle-orm'
import { channelPositions, telemetry } from '../../db/schema.ts'
import type { Store } from '../../db/store.ts'
import { canReadChannel } from '../../shared/access/scope.ts'
import { onChannelSeenBy, seesAllContents, seesNodes, type View } from '../sharing/visible.ts'
import type { WatchingRule } from './rules/watch-list.ts'
import type { Measured, World, WorldNode } from './world.ts'

/** What the owner of a rule sees of the world: without hidden nodes, and with the latest values they may read. */
export async function worldSeenBy(store: Store, { rule, owner: { view } }: WatchingRule, world: World): Promise<World> {
  if (seesAllContents(view)) return world
  const seen = { ...world, nodes: world.nodes.filter(({ nodeNum }) => seesNodes(view, [nodeNum])) }
  if (rule.kind === 'area') return { ...seen, nodes: await placesSeenBy(store, view, seen.nodes) }
  if (rule.kind !== 'metric') return seen
  const latest = world.latest.get(rule.metric)
  if (latest === undefined) return seen
  const values = new Map([...latest, ...(await measuredSeenBy(store, view, { metric: rule.metric, latest }))])
  return { ...seen, latest: new Map([...world.latest, [rule.metric, values]]) }
}

async function placesSeenBy({ db }: Store, view: View, nodes: readonly WorldNode[]): Promise<readonly WorldNode[]> {
  const lacking = nodes.filter((node) => node.latitude !== null && !canReadChannel(view, node.positionChannel))
  if (lacking.length === 0) return nodes
  const ids = JSON.stringify(lacking.map(({ id }) => id))
  const rows = await db
    .select()
    .from(channelPositions)
    .where(
      sql`${channelPositions.nodeId} in (select value from json_each(${ids}))
        and ${onChannelSeenBy(channelPositions.channel, view)}`,
    )
    .orderBy(channelPositions.t)
    .all()
  // The latest is the last one.
  const places = new Map(rows.map((row) => [row.nodeId, row]))
  return nodes.map((node) => {
    const place = places.get(node.id)
    if (place === undefined || canReadChannel(view, node.positionChannel)) return node
    const { latitude, longitude, precisionBits, channel: positionChannel } = place
    return { ...node, latitude, longitude, precisionBits, positionChannel }
  })
}

/** The latest readable value of each node whose latest one is not readable. */
async function measuredSeenBy(
  { db }: Store,
  view: View,
  { metric, latest }: { readonly metric: string; readonly latest: ReadonlyMap<number, Measured> },
): Promise<Map<number, Measured>> {
  const lacking = [...latest].flatMap(([id, { channel }]) => (canReadChannel(view, channel) ? [] : [id]))
  if (lacking.length === 0) return new Map()
  const t = sql<number>`(select max(t) from ${telemetry} where node_id = k.value and metric = m.id
    and ${onChannelSeenBy(telemetry.channel, view)})`
  const rows = await db
    .select({
      nodeId: sql<number>`x.node_id`,
      t: sql<number>`x.t`,
      v: sql<number>`x.v`,
      channel: sql<number | null>`x.channel`,
    })
    .from(sql`json_each(${JSON.stringify(lacking)}) k cross join metrics m on m.name = ${metric}
      cross join telemetry x on x.node_id = k.value and x.metric = m.id and x.t = ${t}`)
    .all()
  return new Map(rows.map(({ nodeId, ...measured }) => [nodeId, measured]))
}
