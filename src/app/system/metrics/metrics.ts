import type { CollectorInfo } from '../../mesh/collector/state.ts'
import { LINK_STATES, type LinkInfo } from '../../mesh/radios/radio.ts'
import { gt, sql } from 'drizzle-orm'
import { sessions } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { RetentionState } from '../../retention/state.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { countFiring } from '../../alerts/outbox/outbox.ts'
import { listRefused } from '../../mesh/ingest/trust/newcomers.ts'
import { readSettings } from '../../settings/settings.ts'
import { countNodes } from '../dashboard/dashboard.ts'
import { type Family, info, type Sample, single } from './exposition.ts'
import { systemFamilies } from './system-families.ts'
import { readSystem } from '../status/system.ts'

const queries = prepareOnce((db) => ({
  sessions: db
    .select({ n: sql<number>`count(*)` })
    .from(sessions)
    .where(gt(sessions.expiresAt, sql.placeholder('now')))
    .prepare(),
}))

/** All current values. The cost does not depend on the number of stored measurements. */
export async function collectMetrics(ctx: SignedInCtx): Promise<Family[]> {
  const { store } = ctx
  const system = await readSystem(ctx)
  const { now, links } = { now: system.now, links: ctx.radio?.links() ?? null }
  const { nodeActiveSeconds } = await readSettings(store)
  const { nodes, activeNodes } = await countNodes(store, ctx.viewer.view, now - nodeActiveSeconds * 1000)
  return [
    info('mesh_build_info', 'The version of the service.', [{ version: system.version }]),
    single('mesh_uptime_seconds', 'gauge', 'Time since the service began to serve.', (now - ctx.startedAt) / 1000),
    single('mesh_nodes', 'gauge', 'Nodes known.', nodes),
    single('mesh_nodes_active', 'gauge', 'Nodes heard in the last nodeActiveSeconds.', activeNodes),
    {
      name: 'mesh_new_nodes_refused_total',
      type: 'counter',
      help: 'Node numbers that were not stored, because their source brought too many new ones in an hour.',
      samples: (await listRefused(store)).map(({ source, refused }) => ({ labels: { source }, value: refused })),
    },
    ...systemFamilies(system),
    ...retentionFamilies(system.retention),
    single('mesh_alerts_firing', 'gauge', 'Firing alerts, of all users.', await countFiring(store)),
    single('mesh_sessions', 'gauge', 'Signed-in sessions.', await countSessions(ctx, now)),
    ...(links === null ? [] : linkFamilies(links)),
    ...collectorFamilies(ctx.radio?.collector() ?? null),
    ...((await ctx.copies?.families()) ?? []),
    ...(ctx.meter?.families() ?? []),
  ]
}

function retentionFamilies({ tables, database }: RetentionState): Family[] {
  const ofTables = (name: string, help: string, read: (table: RetentionState['tables'][number]) => number | null) => {
    const samples = tables.flatMap((each) => {
      const value = read(each)
      return value === null ? [] : [{ labels: { table: each.table }, value }]
    })
    return { name, type: 'gauge', help, samples } as const
  }
  const limitHelp = 'The size that the database can reach: itself and the free disk, or what D1 allows.'
  const seconds = (days: number) => (days * DAY_MS) / 1000
  return [
    single(
      'mesh_database_used_bytes',
      'gauge',
      'Size of the database without what is free inside it.',
      database.usedBytes,
    ),
    single('mesh_database_limit_bytes', 'gauge', limitHelp, database.limitBytes),
    ofTables(
      'mesh_retention_lag_seconds',
      'How much longer than the settings say rows of the table stay, because their deletion takes its time.',
      ({ lagSeconds }) => lagSeconds,
    ),
    ofTables('mesh_retention_set_seconds', 'How long the settings say that rows are kept.', ({ setDays }) =>
      seconds(setDays),
    ),
    ofTables(
      'mesh_retention_kept_seconds',
      'How long rows are really kept at the present growth. Less than set: they would outgrow the disk.',
      ({ keptDays }) => seconds(keptDays),
    ),
    ofTables('mesh_retention_max_rows', 'The most rows of the table, whatever their age.', ({ maxRows }) => maxRows),
  ]
}

/** Null if sessions are stored outside the database. */
async function countSessions({ config, store }: Ctx, now: number): Promise<number | null> {
  if (config.SESSION_STORE !== 'database') return null
  return (await queries(store).sessions.get({ now }))?.n ?? null
}

function collectorFamilies(collector: CollectorInfo | null): Family[] {
  if (collector === null) return []
  const { reason, waiting, lastDeliveredAt, delivered, dropped, filtered } = collector
  const at = lastDeliveredAt === null ? null : lastDeliveredAt / 1000
  return [
    single(
      'mesh_collector_up',
      'gauge',
      'Whether the latest delivery to the other service succeeded.',
      Number(reason === null),
    ),
    single('mesh_collector_waiting', 'gauge', 'Messages that are not delivered yet.', waiting),
    single('mesh_collector_last_delivery_timestamp_seconds', 'gauge', 'When something was last delivered.', at),
    single('mesh_collector_delivered_total', 'counter', 'Messages delivered since the start.', delivered),
    single('mesh_collector_dropped_total', 'counter', 'Messages given up since the start.', dropped),
    single('mesh_collector_filtered_total', 'counter', 'Messages left out by the filter since the start.', filtered),
  ]
}

function linkFamilies(links: readonly LinkInfo[]): Family[] {
  const of = (link: LinkInfo, value: number, more: Readonly<Record<string, string>> = {}): Sample => {
    return { labels: { link: link.name, kind: link.kind, ...more }, value }
  }
  const gauge = (name: string, help: string, samples: Sample[]): Family => ({ name, type: 'gauge', help, samples })
  return [
    gauge(
      'mesh_link_up',
      'Whether the link to a radio or broker is connected.',
      links.map((link) => of(link, Number(link.state === 'connected'))),
    ),
    gauge(
      'mesh_link_state',
      'The state of a link: 1 for the one it is in.',
      links.flatMap((link) => LINK_STATES.map((state) => of(link, Number(link.state === state), { state }))),
    ),
    gauge(
      'mesh_link_last_frame_timestamp_seconds',
      'When something was last heard on a link.',
      links.flatMap((link) => (link.lastFrameAt === null ? [] : [of(link, link.lastFrameAt / 1000)])),
    ),
    gauge(
      'mesh_link_queue_free',
      "Free places in the radio's own sending queue.",
      links.flatMap((link) => (link.queue === null ? [] : [of(link, link.queue.free)])),
    ),
    info(
      'mesh_radio_info',
      'The radio of a link.',
      links.flatMap(({ name, radio }) => (radio === null ? [] : [describeRadio(name, radio)])),
    ),
    {
      name: 'mesh_link_reconnects_total',
      type: 'counter',
      help: 'Number of reconnections of a link.',
      samples: links.map((link) => of(link, link.reconnects)),
    },
  ]
}

function describeRadio(link: string, { nodeNum, firmwareVersion, hwModel, role }: NonNullable<LinkInfo['radio']>) {
  return { link, node: formatNodeId(nodeNum), firmware: firmwareVersion ?? '', model: hwModel ?? '', role: role ?? '' }
}
