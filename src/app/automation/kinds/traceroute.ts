import { desc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, traceroutes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import { ofVisibleNodes, visibleValues, WHOLE_VIEW } from '../../accounts/access/visible.ts'
import { isLocalNode } from '../../mesh/radios/source-table.ts'
import { findSender } from '../../mesh/radios/choose-radio.ts'
import { common, eachOnce, MIN_RUN_MINUTES, targetNode } from './fields.ts'
import { timedKind } from './kind.ts'
import { type Needs, planTraceroute } from './planned.ts'

/** Number of recent traceroutes that show when each node was last queried. */
const RECENT_TRACEROUTES = 10_000

const targetsSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('list'),
    nodes: z.array(targetNode).min(1).max(50).refine(eachOnce, 'each node once').describe('Node numbers or !hex'),
  }),
  z.strictObject({
    kind: z.literal('oldest'),
    activeWithinHours: z
      .int()
      .min(1)
      .max(720)
      .default(24)
      .describe('Among the nodes heard in this many hours, the one whose last traceroute was longest ago'),
  }),
])

const tracerouteRuleSchema = z
  .strictObject({
    kind: z.literal('traceroute'),
    ...common,
    everyMinutes: z.int().min(MIN_RUN_MINUTES).max(10_080),
    targets: targetsSchema,
  })
  .meta({ id: 'TracerouteRule', description: 'Traces routes to nodes in turn' })

type TracerouteRule = z.infer<typeof tracerouteRuleSchema>

/** Traces routes to nodes in turn. */
export const traceroute = timedKind(tracerouteRuleSchema, {
  tokens: [],
  textOf: () => null,
  problemsOf: () => [],
  timingOf: ({ everyMinutes }) => ({ everyMs: everyMinutes * MINUTE_MS }),
  async plan(needs, rule, now) {
    const to = await findTarget(needs, rule, now)
    return to === null ? [] : [await planTraceroute(needs, to)]
  },
})

const value = sql.placeholder

const isOurs = sql`(requested_by is not null or ${isLocalNode(sql`from_node_num`)})`

const asked = sql`(select to_node_num, max(timestamp) as asked_at from traceroutes
  where id > (select max(id) from traceroutes) - ${sql.raw(String(RECENT_TRACEROUTES))} and ${isOurs}
  group by to_node_num) a`

const queries = prepareOnce((db) => ({
  oldest: db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .leftJoin(asked, sql`a.to_node_num = ${nodes.nodeNum}`)
    .where(
      sql`${nodes.lastHeard} > ${value('since')} and ${nodes.nodeNum} <> ${value('own')}
        and not ${nodes.isLocal} and not ${nodes.isIgnored} and not ${nodes.viaMqtt} and ${ofVisibleNodes(nodes.nodeNum)}`,
    )
    .orderBy(sql`coalesce(a.asked_at, 0)`, desc(nodes.lastHeard))
    .limit(1)
    .prepare(),
  asked: db
    .select({ nodeNum: traceroutes.toNodeNum, at: sql<number>`max(${traceroutes.timestamp})` })
    .from(traceroutes)
    .where(
      sql`${traceroutes.toNodeNum} in (select value from json_each(${value('nodes')}))
        and ${isOurs}
        and ${traceroutes.id} > (select max(id) from traceroutes) - ${sql.raw(String(RECENT_TRACEROUTES))}`,
    )
    .groupBy(traceroutes.toNodeNum)
    .prepare(),
  local: db.select({ nodeNum: nodes.nodeNum }).from(nodes).where(eq(nodes.isLocal, true)).limit(1).prepare(),
}))

/** The node whose last traceroute is longest ago, or that was never traced. */
async function findTarget(
  { store, radio, view = WHOLE_VIEW }: Needs,
  { targets }: TracerouteRule,
  now: number,
): Promise<number | null> {
  const own = findSender(radio)?.nodeNum ?? (await queries(store).local.get())?.nodeNum ?? 0
  if (targets.kind === 'list') return oldestOf(store, targets.nodes, own)
  const since = now - targets.activeWithinHours * HOUR_MS
  return (await queries(store).oldest.get({ since, own, ...visibleValues(view) }))?.nodeNum ?? null
}

async function oldestOf(store: Store, listed: readonly number[], own: number): Promise<number | null> {
  const rows = await queries(store).asked.all({ nodes: JSON.stringify(listed) })
  const askedAt = new Map(rows.map(({ nodeNum, at }) => [nodeNum, at]))
  const others = listed.filter((nodeNum) => nodeNum !== own)
  return others.toSorted((a, b) => (askedAt.get(a) ?? 0) - (askedAt.get(b) ?? 0))[0] ?? null
}
