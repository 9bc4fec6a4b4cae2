import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { measurementOf, pathOf, RUNS, timeOf } from '../../../db/runs.ts'
import { telemetry } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { METRIC_MINUTES } from '../../../shared/alerts/alert-kinds.ts'
import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import { maySee, type Requirement } from '../rights.ts'
import { onChannelSeenBy, type View } from '../../accounts/access/visible.ts'
import { readMeasured } from '../past/history.ts'
import { type Fire, lookAtNodes } from '../past/past.ts'
import { watchedSchema, watcher } from '../world/watched.ts'
import type { Measured, World, WorldNode } from '../world/world.ts'
import type { Fact } from '../facts.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, nodeSubject, type OpenAlerts, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const metricSchema = z
  .strictObject({
    kind: z.literal('metric'),
    ...common,
    nodes: watchedSchema,
    metric: z
      .string()
      .regex(/^[A-Za-z]{1,40}\.[A-Za-z0-9]{1,60}$/, 'variant.metric')
      .describe('Name as in GET /api/telemetry, e.g. deviceMetrics.batteryLevel'),
    is: z.enum(['above', 'below']),
    limit: z.number().min(-1e12).max(1e12),
    hysteresis: z
      .number()
      .min(0)
      .max(1e12)
      .default(0)
      .describe('How far the value must return beyond the limit before the alert is over'),
    forMinutes: z.int().min(METRIC_MINUTES.min).max(METRIC_MINUTES.max).default(0),
  })
  .meta({ id: 'MetricRule', description: 'A measurement of a watched node is above or below a limit' })

type MetricRule = z.infer<typeof metricSchema>

const REQUIRES: Requirement = ALERT_NEEDS.metric

export const metric = defineKind(metricSchema, {
  requires: REQUIRES,
  state: { needs: (rule) => ({ nodes: true, metric: rule.metric }), find: findBeyond, seenBy },
  preview: (ctx, rule, { from }) =>
    lookAtNodes(ctx, rule.nodes, async (node) =>
      metricFires(rule, node, await readMeasured(ctx, node.id, rule.metric, from)),
    ),
})

/** Older measurements do not describe the present. */
const STALE_MS = 2 * DAY_MS

/** Whether a value is beyond the limit. Once it was, it must return by the hysteresis. */
function isBeyond({ is, limit, hysteresis }: MetricRule, value: number, was: boolean): boolean {
  const slack = was ? hysteresis : 0
  return is === 'above' ? value > limit - slack : value < limit + slack
}

function findBeyond({ rule, anchorAt, owner }: Watching<MetricRule>, world: World, open: OpenAlerts): Finding[] {
  const isWatched = watcher(rule.nodes)
  const latest = world.latest.get(rule.metric)
  if (latest === undefined) return []
  return world.nodes.flatMap((node) => {
    const measured = latest.get(node.id)
    if (measured === undefined || !isWatched(node)) return []
    if (!maySee(owner, REQUIRES, { channel: measured.channel, direct: false })) return []
    const { nodeNum } = node
    const subject = nodeSubject(nodeNum)
    const known = open.get(subject)
    if (known === undefined && measured.t < world.now - STALE_MS) return []
    if (!isBeyond(rule, measured.v, known !== undefined)) return []
    const since = known?.startedAt ?? measured.t
    const forMs = rule.forMinutes * MINUTE_MS
    return [
      {
        subject,
        key: `${nodeNum}@${since}@${anchorAt}`,
        nodeNum,
        channel: measured.channel,
        since,
        forMs,
        isKnown: true,
        fact: factOf(rule, node.name, measured.v),
      },
    ]
  })
}

const factOf = ({ metric, is, limit }: MetricRule, name: string, value: number): Fact => ({
  event: 'metric',
  name,
  metric,
  value,
  is,
  limit,
})

async function seenBy(store: Store, { rule, owner: { view } }: Watching<MetricRule>, world: World): Promise<World> {
  const latest = world.latest.get(rule.metric)
  if (latest === undefined) return world
  const values = new Map([...latest, ...(await measuredSeenBy(store, view, { metric: rule.metric, latest }))])
  return { ...world, latest: new Map([...world.latest, [rule.metric, values]]) }
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
  const { v, channel } = measurementOf()
  const inRuns = sql`(select json_array(${timeOf(RUNS)}, ${v}, ${channel}) from telemetry_runs r
    cross join json_each(r.body, ${pathOf(sql`m.id`)}) e where r.node_id = k.value
    and ${onChannelSeenBy(sql`${channel}`, view)} order by r.t desc, e.key + 0 desc limit 1)`
  const asked = sql`json_each(${JSON.stringify(lacking)}) k cross join metrics m on m.name = ${metric}`
  const rows = await db.all<Measured & { readonly nodeId: number }>(
    sql`select nodeId, max(t) as t, v, channel from (
      select x.node_id as nodeId, x.t as t, x.v as v, x.channel as channel from ${asked}
        cross join telemetry x on x.node_id = k.value and x.metric = m.id and x.t = ${t}
      union all select id, row ->> 0, row ->> 1, row ->> 2 from
        (select k.value as id, ${inRuns} as row from ${asked}) where row is not null) group by nodeId`,
  )
  return new Map(rows.map(({ nodeId, ...measured }) => [nodeId, measured]))
}

/** Pure: the times at which values would have fired, oldest first. */
function metricFires(
  rule: MetricRule,
  { nodeNum, name }: Pick<WorldNode, 'nodeNum' | 'name'>,
  values: readonly { t: number; v: number }[],
): Fire[] {
  const fires: Fire[] = []
  const forMs = rule.forMinutes * MINUTE_MS
  let since: number | null = null
  let fired: Fire | null = null
  for (const { t, v } of values) {
    if (isBeyond(rule, v, since !== null)) {
      since ??= t
      if (fired === null && t - since >= forMs)
        fired = { at: since + forMs, resolvedAt: null, nodeNum, fact: factOf(rule, name, v) }
    } else {
      if (fired !== null) fires.push({ ...fired, resolvedAt: t })
      since = null
      fired = null
    }
  }
  return fired === null ? fires : [...fires, fired]
}
