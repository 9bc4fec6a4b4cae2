import { ownedBy } from '../../base/owned.ts'
import { backupSchema } from '../backup/backup.ts'
import { LINK_STATES, type LinkInfo } from '../../mesh/radios/radio.ts'
import { desc, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, revisions } from '../../../db/schema.ts'
import { type Db, prepareOnce, readTogether, type Store } from '../../../db/store.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { ofHiddenNode, type View, viewKey, visibleValues } from '../../accounts/access/visible.ts'
import { ACTIVE_SECONDS, settingQueries, settingsOf } from '../../settings/settings.ts'
import { firstHour, HOURS, isLoggedSince, trafficHours, trafficQueries } from './traffic-hours.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { LINK_KINDS } from '../../../shared/mesh/link-kinds.ts'
import { timeField } from '../../http/fields.ts'

const linkSchema = z
  .object({
    name: z.string(),
    kind: z.enum(LINK_KINDS),
    state: z.enum(LINK_STATES),
    since: timeField,
    lastFrameAt: timeField.nullable(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'DashboardLink', description: 'The connection to a radio or a broker' })

const hourSchema = z.object({ t: timeField.describe('Start of the hour'), messages: z.int(), packets: z.int() })

export const dashboardSchema = z
  .object({
    counts: z.object({
      nodes: z.int(),
      activeNodes: z.int().describe('Heard in the last activeSeconds'),
      messages: z.int().describe('In the hours listed below'),
      packets: z.int().describe('In the hours listed below, as far as the packet log goes back'),
    }),
    activeSeconds: z.int().describe('The setting nodeActiveSeconds'),
    hours: z.array(hourSchema).describe('The last 24 hours of the clock, oldest first; the last one is not over'),
    dayBefore: z
      .object({
        messages: z.int(),
        packets: z.int().nullable().describe('Null: the packet log does not go back that far'),
      })
      .nullable()
      .describe(
        'A day earlier, in the same hours without the last one, which is not over. Null where each row read is charged',
      ),
    channelUtilization: z.number().nullable().describe('Percent, as last measured by the first radio of this service'),
    airUtilTx: z.number().nullable().describe('Percent of the last hour that this radio sent'),
    measuredAt: timeField.nullable(),
    link: linkSchema.nullable().describe('The first link; null without any'),
    links: z.array(linkSchema),
    lastBackup: backupSchema.pick({ name: true, createdAt: true, kind: true, sizeBytes: true }).nullable(),
    storage: z.object({ databaseBytes: z.int().nullable().describe('Null: unknown on this runtime') }),
  })
  .meta({ id: 'Dashboard' })
export type Dashboard = z.infer<typeof dashboardSchema>

/** Nodes that are not hidden, and those of them heard at or after `since`. */
const countNodesSince = (db: Db, since: SQL) =>
  db
    .select({
      nodes: sql<number>`(select row_count from ${revisions} where name = 'nodes')
        - (select count(*) from ${nodes} where ${ofHiddenNode(nodes.nodeNum)})`,
      activeNodes: sql<number>`(select count(*) from ${nodes} where last_heard >= ${since})
        - (select count(*) from ${nodes} where ${ofHiddenNode(nodes.nodeNum)} and +last_heard >= ${since})`,
    })
    .from(sql`(select 1)`)
    .prepare()

const queries = prepareOnce((db) => ({
  counts: countNodesSince(db, sql`${sql.placeholder('since')}`),
  known: countNodesSince(db, sql`${sql.placeholder('now')} - 1000 * ${ACTIVE_SECONDS}`),
  air: db
    .select({
      channelUtilization: nodes.channelUtilization,
      airUtilTx: nodes.airUtilTx,
      measuredAt: nodes.deviceMetricsTime,
      channel: nodes.metricsChannel,
    })
    .from(nodes)
    .where(sql`is_local`)
    .orderBy(desc(nodes.deviceMetricsTime))
    .limit(1)
    .prepare(),
}))

/** The data of the start page. The cost does not depend on the amount of stored data. */
export async function readDashboard(ctx: SignedInCtx): Promise<Dashboard> {
  const { store } = ctx
  const { view } = ctx.viewer
  const { activeSeconds, counts, hours, dayBefore, air: measured } = await readFacts(store, view, ctx.now())
  const air = measured !== undefined && canReadChannel(view, measured.channel) ? measured : null
  const links = (ctx.radio?.links() ?? []).map(describeLink)
  return {
    counts: { ...counts, messages: total(hours, 'messages'), packets: total(hours, 'packets') },
    activeSeconds,
    hours,
    dayBefore,
    channelUtilization: air?.channelUtilization ?? null,
    airUtilTx: air?.airUtilTx ?? null,
    measuredAt: air?.measuredAt ?? null,
    link: links[0] ?? null,
    links,
    lastBackup: await readLastBackup(ctx),
    storage: { databaseBytes: await store.sizeBytes() },
  }
}

/** If each row read is charged, counts are cached for this long; else within a minute, until the database changes. */
const KEPT_MS = MINUTE_MS

type Facts = Awaited<ReturnType<typeof countAll>>
/** The number of views whose counts are cached. */
const KEPT_VIEWS = 16
type Counted = { readonly at: number; readonly version: number | null; readonly facts: Facts }
const countsByView = ownedBy((_db: Db) => new Map<string, Counted>())

/** Counts of what the view shows. On D1 they may be a minute old; elsewhere, nodes become inactive by the minute. */
export async function readFacts(store: Store, view: View, now: number): Promise<Facts> {
  const version = store.version()
  const views = countsByView(store.db)
  const key = viewKey(view)
  const last = views.get(key)
  const from = store.batch === undefined ? now - (now % MINUTE_MS) : now - KEPT_MS + 1
  if (last !== undefined && last.version === version && last.at >= from && last.at <= now) return last.facts
  const facts = await countAll(store, view, now)
  views.delete(key)
  views.set(key, { at: now, version, facts })
  const [oldest] = views.size > KEPT_VIEWS ? views.keys() : []
  if (oldest !== undefined) views.delete(oldest)
  return facts
}

async function countAll(store: Store, view: View, now: number) {
  // The day before is not worth the rows where each is charged.
  const hoursRead = store.batch === undefined ? 2 * HOURS : HOURS
  const start = firstHour(now, hoursRead)
  const traffic = trafficQueries(store, view)
  const { air, known } = queries(store)
  const values = { start, now, ...visibleValues(view) }
  const [settings, [counted], messages, begun, leftOut, [measured]] = await readTogether(store, values, [
    settingQueries(store).all,
    known,
    traffic.messages,
    traffic.begun,
    traffic.leftOut,
    air,
  ])
  const { nodeActiveSeconds: activeSeconds } = settingsOf(settings)
  const counts = { nodes: counted?.nodes ?? 0, activeNodes: counted?.activeNodes ?? 0 }
  const read = trafficHours(start, view, { messages, begun, leftOut }, hoursRead)
  const before = read.slice(0, -HOURS).slice(0, -1)
  const isLogged = isLoggedSince(begun)
  const dayBefore =
    before.length === 0
      ? null
      : { messages: total(before, 'messages'), packets: isLogged ? total(before, 'packets') : null }
  return { activeSeconds, counts, hours: read.slice(-HOURS), dayBefore, air: measured }
}

/** The number of nodes, and of those heard at or after `since`, without those that the view hides. */
export async function countNodes(
  store: Store,
  view: View,
  since: number,
): Promise<{ nodes: number; activeNodes: number }> {
  const row = await queries(store).counts.get({ since, ...visibleValues(view) })
  return { nodes: row?.nodes ?? 0, activeNodes: row?.activeNodes ?? 0 }
}

function total(hours: Dashboard['hours'], what: 'messages' | 'packets'): number {
  return hours.reduce((sum, hour) => sum + hour[what], 0)
}

function describeLink({ name, kind, state, since, lastFrameAt, reason }: LinkInfo): Dashboard['links'][number] {
  return { name, kind, state, since, lastFrameAt, reason }
}

async function readLastBackup({ backups }: Pick<Ctx, 'backups'>): Promise<Dashboard['lastBackup']> {
  const [last] = backups === null ? [] : await backups.list()
  if (last === undefined) return null
  const { name, createdAt, kind, sizeBytes } = last
  return { name, createdAt, kind, sizeBytes }
}
