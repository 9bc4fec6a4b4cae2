import { desc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { channelMetrics, nodes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { seesEverything } from '../../accounts/access/visible.ts'
import { shownName } from '../world/node-names.ts'
import { readMeasured } from '../past/history.ts'
import { type Fire, lookAtNodes } from '../past/past.ts'
import { maySee, type Requirement } from '../rights.ts'
import { watchedColumns, watchedSchema, watcher } from '../world/watched.ts'
import type { WorldNode } from '../world/world.ts'
import type { Fact } from '../facts.ts'
import { common } from './fields.ts'
import { type Batch, defineKind, type Event, nodeSubject, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const nodeRestartedSchema = z
  .strictObject({ kind: z.literal('node_restarted'), ...common, nodes: watchedSchema })
  .meta({ id: 'NodeRestartedRule', description: 'The uptime of a watched node fell, so it has restarted' })

type NodeRestartedRule = z.infer<typeof nodeRestartedSchema>

const REQUIRES: Requirement = ALERT_NEEDS.node_restarted

export const nodeRestarted = defineKind(nodeRestartedSchema, {
  requires: REQUIRES,
  heard: findRestarts,
  preview: (ctx, { nodes: watched }, { from }) =>
    lookAtNodes(ctx, watched, async (node) =>
      restartFires(node, await readMeasured(ctx, node.id, 'deviceMetrics.uptimeSeconds', from)),
    ),
})

const queries = prepareOnce((db) => ({
  uptimes: db
    .select({
      ...watchedColumns,
      longName: nodes.longName,
      nameAltered: nodes.nameAltered,
      uptime: nodes.uptimeSeconds,
      t: nodes.deviceMetricsTime,
      channel: nodes.metricsChannel,
    })
    .from(nodes)
    .where(sql`node_num in (select value from json_each(${sql.placeholder('nums')}))`)
    .prepare(),
  // For nodes whose latest uptime came on another channel: earlier ones, latest first.
  earlierUptimes: db
    .select({
      nodeNum: nodes.nodeNum,
      uptime: channelMetrics.uptimeSeconds,
      t: channelMetrics.t,
      channel: channelMetrics.channel,
    })
    .from(nodes)
    .innerJoin(channelMetrics, eq(channelMetrics.nodeId, nodes.id))
    .where(sql`node_num in (select value from json_each(${sql.placeholder('nums')}))`)
    .orderBy(desc(channelMetrics.t))
    .prepare(),
}))

type Uptime = { readonly seconds: number; readonly t: number }

/** Whether a node restarted between two reports of its uptime. */
function isRestart(before: Uptime, after: Uptime): boolean {
  return after.t > before.t && after.seconds < before.seconds
}

function restarted(name: string, before: Uptime): Fact {
  return { event: 'node_restarted', name, ms: before.seconds * 1000 }
}

async function findRestarts(
  store: Store,
  rules: readonly Watching<NodeRestartedRule>[],
  { plan }: Batch,
): Promise<Event[]> {
  if (rules.length === 0) return []
  const latest = new Map<number, UptimeOn>()
  for (const row of plan.heard) {
    const { nodeNum, uptimeSeconds = null, deviceMetricsTime = null, metricsChannel = UNKNOWN_CHANNEL } = row
    if (uptimeSeconds === null || deviceMetricsTime === null) continue
    const before = latest.get(nodeNum)
    if (before === undefined || before.t < deviceMetricsTime)
      latest.set(nodeNum, { seconds: uptimeSeconds, t: deviceMetricsTime, channel: metricsChannel })
  }
  if (latest.size === 0) return []
  const nums = JSON.stringify([...latest.keys()])
  const rows = await queries(store).uptimes.all({ nums })
  const isNarrow = rules.some(({ owner }) => !seesEverything(owner.view))
  const earlier = isNarrow ? await queries(store).earlierUptimes.all({ nums }) : []
  return rows.flatMap((row) => {
    const { nodeNum } = row
    const after = latest.get(nodeNum)
    if (after === undefined) return []
    // The latest first.
    const uptimes = [row, ...earlier.filter((each) => each.nodeNum === nodeNum)].flatMap(({ uptime, t, channel }) =>
      uptime === null || t === null ? [] : [{ seconds: uptime, t, channel }],
    )
    const about = { channel: after.channel, direct: false, nodeNum }
    return rules.flatMap((watching): Event[] => {
      const { rule, owner } = watching
      if (!watcher(rule.nodes)(row) || !maySee(owner, REQUIRES, about)) return []
      const before = uptimes.find(({ channel }) => canReadChannel(owner.view, channel))
      if (before === undefined || !isRestart(before, after)) return []
      const fact = restarted(shownName(row), before)
      const { channel } = after
      const key = `${nodeNum}@${after.t}`
      return [{ watching, subject: nodeSubject(nodeNum), key, nodeNum, channel, direct: false, fact }]
    })
  })
}

type UptimeOn = Uptime & { readonly channel: number | null }

function restartFires({ nodeNum, name }: WorldNode, values: readonly { t: number; v: number }[]): Fire[] {
  return values.flatMap(({ t, v: seconds }, index) => {
    const before = values[index - 1]
    if (before === undefined) return []
    const was = { seconds: before.v, t: before.t }
    return isRestart(was, { seconds, t }) ? [{ at: t, resolvedAt: null, nodeNum, fact: restarted(name, was) }] : []
  })
}
