import { sql } from 'drizzle-orm'
import { packetFromId } from '../../db/packet-log.ts'
import { messages, nodes, packetPages, retentionPlans, RETAINED_TABLES, sweeps } from '../../db/schema.ts'
import { literals } from '../../db/json-rows.ts'
import { countedAs } from '../../db/runs.ts'
import { prepareOnce, readTogether, type Statement, type Store } from '../../db/store.ts'
import { isNameOf } from '../../shared/names.ts'
import { DAY_MS } from '../../shared/time.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { DAYS_HEARD } from '../mesh/nodes/deletion/evidence.ts'
import type { Settings } from '../settings/settings.ts'
import { recountAll } from './recount.ts'
import { type Bounds, boundsOf, bytesOf, USUAL_LIMIT_BYTES } from './bounds.ts'

export type RetainedTable = (typeof RETAINED_TABLES)[number]

/** The setting that says for how many days the rows of a table are kept. */
export const SETTING_OF = {
  telemetry: 'telemetryRetentionDays',
  telemetry_hourly: 'telemetryHourlyRetentionDays',
  packets: 'packetRetentionDays',
  positions: 'positionRetentionDays',
  messages: 'messageRetentionDays',
} as const satisfies Record<RetainedTable, keyof Settings>

type Plan = typeof retentionPlans.$inferSelect
/** By table; none before the first run of the upkeep. */
export type Plans = ReadonlyMap<RetainedTable, Plan>
/** The time before which a table has no row; absent: unknown. */
export type Beginnings = ReadonlyMap<RetainedTable, number>

/** What nodes known for days may fill of a table. The rest is for newcomers and for busy days. */
const PLANNED_SHARE = 0.9
/** A table with fewer of these rows loses none before its time. */
const CROWDED_SHARE = 0.8
/** One node counts as at most so many times the usual one: a flood in its name does not shorten everybody's history. */
const MAX_TIMES_USUAL = 10
/** Nodes heard on fewer days than this part of the longest known one, 32 days at most, are newcomers. */
const KNOWN_SHARE = 0.5
const MAX_DAYS = 32
/** How much of itself the size that the database can reach sinks in a day, as a large file may be there for an hour. */
const SINKING_A_DAY = 0.1
/** A shorter time says little about an ordinary day. */
const LEAST_SPAN_MS = DAY_MS
const NODES_AT_ONCE = 1000

const value = sql.placeholder
// What is packed is counted as rows of the same size.
const counted = (table: RetainedTable, owner: 'id' | 'node_num') =>
  sql<number | null>`(select sum(c.n) from row_counts c where c.table_name in (${literals(countedAs(table))})
    and c.owner = n.${sql.raw(owner)})`

const queries = prepareOnce((db) => ({
  plans: db.select().from(retentionPlans).prepare(),
  nodes: db
    .select({
      id: sql<number>`n.id`,
      firstHeard: sql<number>`n.first_heard`,
      days: sql<number>`${sql.raw(DAYS_HEARD)}`,
      isSure: sql<number>`n.heard_by_radio or n.is_local or n.is_favorite or n.notes <> ''`,
      telemetry: counted('telemetry', 'id'),
      telemetry_hourly: counted('telemetry_hourly', 'id'),
      packets: counted('packets', 'node_num'),
      positions: counted('positions', 'id'),
      messages: counted('messages', 'node_num'),
    })
    .from(sql`${nodes} n`)
    .where(sql`n.id > ${value('after')}`)
    .orderBy(sql`n.id`)
    .limit(value('nodes'))
    .prepare(),
  sweeps: db.select({ name: sweeps.name, doneBefore: sweeps.doneBefore }).from(sweeps).prepare(),
  packet: db
    .select({ t: sql<number>`t`.as('t') })
    .from(sql`(${packetFromId(0)})`)
    .prepare(),
  // Pages have no rows of single nodes.
  pages: db
    .select({
      packets: sql<number>`coalesce(sum(packets), 0)`.as('packets'),
      from: sql<number | null>`min(t_first)`.as('from'),
    })
    .from(packetPages)
    .prepare(),
  message: db
    .select({ t: sql<number | null>`min(${messages.timestamp})` })
    .from(messages)
    .prepare(),
}))

/** What upkeep last found out. Reads about a dozen rows. */
export async function readPlans(store: Store): Promise<{ readonly plans: Plans; readonly beginnings: Beginnings }> {
  const prepared = queries(store)
  const selects = [prepared.plans, prepared.sweeps, prepared.packet, prepared.message] as const
  const [plans, swept, [packet], [message]] = await readTogether(store, {}, selects)
  const beginnings = new Map<RetainedTable, number>()
  for (const { name, doneBefore } of swept) if (isNameOf(SETTING_OF, name)) beginnings.set(name, doneBefore)
  if (packet !== undefined) beginnings.set('packets', packet.t)
  if (message !== undefined && message.t !== null) beginnings.set('messages', message.t)
  return { plans: new Map(plans.map((plan) => [plan.table, plan])), beginnings }
}

/** The bounds of all tables, as planned last. */
export function plannedBounds(settings: Settings, plans: Plans, space: Awaited<ReturnType<Store['space']>>): Bounds {
  const [plan] = plans.values()
  const limitBytes = plan?.limitBytes ?? space?.limitBytes ?? USUAL_LIMIT_BYTES
  const needs = new Map<RetainedTable, number>()
  for (const { table, rowsPerDay: added } of plans.values()) {
    needs.set(table, bytesOf(table, (added * settings[SETTING_OF[table]]) / PLANNED_SHARE))
  }
  return boundsOf(limitBytes, Object.fromEntries(needs))
}

/** How long rows of a table fit into it, in milliseconds; null: for ever. */
export function fitMs(plan: Pick<Plan, 'rowsPerDay'>, bound: number): number | null {
  return plan.rowsPerDay === 0 ? null : (bound * PLANNED_SHARE * DAY_MS) / plan.rowsPerDay
}

/** Rows older than these times are deleted, in milliseconds. */
export type Cutoffs = Readonly<Record<RetainedTable, number>>

/** What the settings alone say. */
export function promisedCutoffs(settings: Settings, now: number): Cutoffs {
  const cutoff = (table: RetainedTable) => now - settings[SETTING_OF[table]] * DAY_MS
  return {
    telemetry: cutoff('telemetry'),
    telemetry_hourly: cutoff('telemetry_hourly'),
    packets: cutoff('packets'),
    positions: cutoff('positions'),
    messages: cutoff('messages'),
  }
}

/** What the settings say, or less in a table that would outgrow its bound: then the oldest rows go, and not the latest. */
export function plannedCutoffs(settings: Settings, plans: Plans, now: number): Cutoffs {
  const planned = { ...promisedCutoffs(settings, now) }
  const bounds = plannedBounds(settings, plans, null)
  for (const [table, plan] of plans) {
    const fit = fitMs(plan, bounds[table])
    if (fit !== null && plan.rows > bounds[table] * CROWDED_SHARE)
      planned[table] = Math.max(planned[table], Math.floor(now - fit))
  }
  return planned
}

/** A node with its rows in one table. */
type Owner = { readonly rows: number; readonly spanMs: number; readonly isKnown: boolean }

/**
 * The rows that an ordinary day adds, by nodes known for days: newcomers, who can be made up, take only what those
 * leave. No node counts as more than ten times the usual one.
 */
export function rowsPerDay(owners: readonly Owner[]): number {
  const rates = owners.flatMap(({ rows, spanMs, isKnown }) =>
    isKnown && rows > 0 ? [rows / (Math.max(spanMs, LEAST_SPAN_MS) / DAY_MS)] : [],
  )
  const usual = rates.toSorted((a, b) => a - b)[Math.floor(rates.length / 2)] ?? 0
  return Math.ceil(rates.reduce((sum, rate) => sum + Math.min(rate, usual * MAX_TIMES_USUAL), 0))
}

/** The size that the database can reach: grows at once, sinks slowly, so that no passing shortage deletes history. */
export function nextLimit(before: Pick<Plan, 'limitBytes' | 'plannedAt'> | undefined, found: number, now: number) {
  if (before === undefined) return Math.floor(found)
  const days = Math.max(0, now - before.plannedAt) / DAY_MS
  return Math.floor(Math.max(found, before.limitBytes * (1 - SINKING_A_DAY) ** days))
}

/**
 * Finds out how fast the tables grow and how much room there is; not again before `everyMs` is over. Works in slices of
 * nodes; nothing is stored if `pause` ends it. `counting` is awaited instead while rows are counted, which goes on in the
 * next run.
 */
export async function planRetention(
  { store, now, everyMs }: { readonly store: Store; readonly now: number; readonly everyMs: number },
  pause: Pause,
  share: Share = wholeSlices,
  counting: Pause = pause,
): Promise<void> {
  const { plans, beginnings } = await readPlans(store)
  const [before] = plans.values()
  // A plan of the future was made by a clock that was ahead.
  if (before !== undefined && before.plannedAt <= now && now - before.plannedAt < everyMs) return
  if (!(await recountAll(store, { pause: counting, share }))) return
  const known: NodeRow[] = []
  for (let after = 0, isLast = false; !isLast;) {
    const limit = partOf(NODES_AT_ONCE, share())
    const rows = await queries(store).nodes.all({ after, nodes: limit })
    known.push(...rows)
    after = rows.at(-1)?.id ?? after
    isLast = rows.length < limit
    if (!isLast && !(await pause())) return
  }
  const longest = Math.min(
    MAX_DAYS,
    known.reduce((most, { days }) => Math.max(most, days), 0),
  )
  const space = await store.space()
  const limitBytes = nextLimit(before, space?.limitBytes ?? USUAL_LIMIT_BYTES, now)
  const packed = await readPages(store, now)
  const planned: Plan[] = []
  for (const table of RETAINED_TABLES) {
    if (known.length > NODES_AT_ONCE) await nextTurn()
    const begun = beginnings.get(table) ?? 0
    const owners = known.map((node) => ({
      rows: node[table] ?? 0,
      spanMs: now - Math.max(node.firstHeard, begun > now ? 0 : begun),
      isKnown: node.isSure === 1 || node.days >= longest * KNOWN_SHARE,
    }))
    const total = owners.reduce((sum, owner) => sum + owner.rows, 0)
    const more = table === 'packets' ? packed : { rows: 0, rowsPerDay: 0 }
    const perDay = rowsPerDay(owners) + more.rowsPerDay
    planned.push({ table, rows: total + more.rows, rowsPerDay: perDay, limitBytes, plannedAt: now })
  }
  const [first, ...others] = planned.map((plan) => storePlan(store, plan))
  if (first !== undefined) await store.atomic([first, ...others])
}

async function readPages(store: Store, now: number): Promise<Pick<Plan, 'rows' | 'rowsPerDay'>> {
  const pages = await queries(store).pages.get()
  const rows = pages?.packets ?? 0
  const spanMs = Math.max(LEAST_SPAN_MS, now - (pages?.from ?? now))
  return { rows, rowsPerDay: Math.ceil((rows * DAY_MS) / spanMs) }
}

type NodeRow = { readonly id: number; readonly firstHeard: number; readonly days: number; readonly isSure: number } & {
  readonly [Table in RetainedTable]: number | null
}

function storePlan({ db }: Store, { table, ...plan }: Plan): Statement {
  return db
    .insert(retentionPlans)
    .values({ table, ...plan })
    .onConflictDoUpdate({ target: retentionPlans.table, set: plan })
}
