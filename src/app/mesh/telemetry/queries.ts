import { and, eq, gte, lte, sql, type SQL } from 'drizzle-orm'
import {
  DAILY_RUNS,
  entriesOf,
  hasRuns,
  HOURLY_RUNS,
  isSummarised,
  measurementOf,
  pathOf,
  type RunForm,
  RUNS,
  summarisedUntil,
  summaryOf,
  timeOf,
  WHOLE_RUN,
} from '../../../db/runs.ts'
import { metrics, telemetry, telemetryDaily, telemetryHourly } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { MIXED_WITH_DIRECT, UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { ofVisibleNodes, onVisibleChannel } from '../../accounts/access/visible.ts'
import { oneChannel } from './one-channel.ts'

const value = sql.placeholder
const ANY = sql`true`

const isInRange = (t: typeof telemetry | typeof telemetryHourly | typeof telemetryDaily) =>
  and(eq(t.nodeId, value('nodeId')), eq(t.metric, value('metric')), gte(t.t, value('from')), lte(t.t, value('to')))

const MIXED = sql.raw(`(${UNKNOWN_CHANNEL}, ${MIXED_WITH_DIRECT})`)

const asked = { node: sql`${value('nodeId')}`, metric: sql`${value('metric')}` }
const range = { ...asked, from: sql`${value('from')}`, to: sql`${value('to')}` }
const visible = (channel: SQL) => onVisibleChannel(channel)

const MEASUREMENT = measurementOf()
const SUMMARY = summaryOf()
const OF_MEASUREMENTS = sql`count(*) as n, min(x.v) as min, max(x.v) as max, sum(x.v) as sum`
const OF_PACKED = sql`count(*) as n, min(${MEASUREMENT.v}) as min, max(${MEASUREMENT.v}) as max, sum(${MEASUREMENT.v}) as sum`
const OF_HOURS = sql`sum(x.n) as n, min(x.min) as min, max(x.max) as max, sum(x.sum) as sum`
const OF_PACKED_HOURS = sql`sum(${SUMMARY.n}) as n, min(${SUMMARY.min}) as min, max(${SUMMARY.max}) as max,
  sum(${SUMMARY.sum}) as sum`

/** Packed rows, as a select of the range. */
const packedRaw = (isSeen: SQL) => {
  const { from, where } = entriesOf(RUNS, range)
  return sql`select ${timeOf(RUNS)}, ${MEASUREMENT.v} from ${from} where ${where} and ${isSeen}`
}

const packedSums = (form: RunForm, isSeen: SQL) => {
  const { from, where } = entriesOf(form, range)
  const { n, min, max, sum } = SUMMARY
  return sql`select ${timeOf(form)}, ${n}, ${min}, ${max}, ${sum} from ${from} where ${where} and ${isSeen}`
}

// Days that no pass has reached are put together from their hours.
const packedDaysBegun = (isSeen: SQL) => {
  const { from, where } = entriesOf(HOURLY_RUNS, { ...range, to: sql`${value('to')} + ${sql.raw(String(DAY_MS))}` })
  return sql`select r.t, ${OF_PACKED_HOURS} from ${from} where ${where} and r.t <= ${value('to')}
    and r.t >= ${summarisedUntil('days')} and not ${isSummarised('days')} and ${isSeen} group by r.t`
}

/** Summaries of several channels, `d`, from those of the rows that they were made from which the view includes. */
const packedMixed = (form: RunForm, below: RunForm, sums: SQL, channel: SQL) => {
  const path = pathOf(sql`${value('metric')}`)
  const of = summaryOf('de').channel
  const t = sql`d.t + de.key * ${sql.raw(String(form.stepMs))}`
  return sql`select ${t} as t, ${sums} from ${sql.raw(form.table)} d cross join json_each(d.body, ${path}) de
    cross join ${sql.raw(below.table)} r on r.node_id = d.node_id and r.t = ${t}
    cross join json_each(r.body, ${path}) e where de.type = 'array' and e.type = 'array' and d.node_id = ${value('nodeId')} and ${visible(sql`${channel}`)}
    and d.t > ${value('from')} - ${sql.raw(String(form.rowMs))} and d.t <= ${value('to')}
    and ${t} >= ${value('from')} and ${t} <= ${value('to')} and ${of} in ${MIXED} and not ${visible(sql`${of}`)}
    group by 1`
}

/** Without packed rows in order; with them, those of each select come one after the other. */
const sumsFrom = (db: Db, selects: readonly SQL[], packed: readonly SQL[]) => {
  const query = db
    .select({
      t: sql<number>`s.t`,
      n: sql<number>`s.n`,
      min: sql<number>`s.min`,
      max: sql<number>`s.max`,
      sum: sql<number>`s.sum`,
    })
    .from(sql`(${sql.join([...selects, ...packed], sql` union all `)}) s`)
  return (packed.length === 0 ? query.orderBy(sql`s.t`) : query).prepare()
}

/** A summary of several channels is recalculated from those of its rows that the view includes. */
const seenSums = (db: Db, { table, below, spanMs, sums }: Summaries, packed: readonly SQL[]) =>
  sumsFrom(
    db,
    [
      sql`select t, n, min, max, sum from ${table} where ${isInRange(table)} and ${onVisibleChannel(table.channel)}`,
      sql`select d.t, ${sums} from ${table} d cross join ${below} x on x.node_id = d.node_id
        and x.metric = d.metric and x.t >= d.t and x.t < d.t + ${sql.raw(String(spanMs))}
        and ${onVisibleChannel(sql`x.channel`)}
      where d.node_id = ${value('nodeId')} and d.metric = ${value('metric')} and d.t >= ${value('from')}
        and d.t <= ${value('to')} and d.channel in ${MIXED} and not ${onVisibleChannel(sql`d.channel`)} group by d.t`,
    ],
    packed,
  )

type Summaries = {
  readonly table: typeof telemetryHourly | typeof telemetryDaily
  readonly below: typeof telemetry | typeof telemetryHourly
  readonly spanMs: number
  /** n, min, max and sum of the rows `x`. */
  readonly sums: SQL
}

/** Hours without a summary; packed ones are those that the pass has not reached, and those noted since. */
const readFresh = (db: Db, isPacked: boolean, isSeen = ANY, isPackedSeen = ANY) => {
  const packed = (from: SQL, which: SQL) => sql`select r.t, ${OF_PACKED} from ${from}
    cross join json_each(r.body, ${pathOf(asked.metric)}) e where e.type = 'array' and ${which} and ${isPackedSeen} group by r.t`
  const inRange = (of: string) =>
    sql`${sql.raw(of)}.node_id = ${value('nodeId')} and ${sql.raw(of)}.t >= ${value('from')} and ${sql.raw(of)}.t <= ${value('to')}`
  const isFresh = sql`d.node_id = ${value('nodeId')} and d.metric = ${value('metric')} and d.t >= ${value('from')}
    and d.t <= ${value('to')} and x.node_id = d.node_id and x.metric = d.metric and x.t >= d.t
    and x.t < d.t + ${sql.raw(String(HOUR_MS))} and ${isSeen}`
  const rows = sql`telemetry_dirty d cross join telemetry x`
  if (!isPacked) {
    return db
      .select({
        t: sql<number>`d.t`,
        n: sql<number>`count(*)`,
        min: sql<number>`min(x.v)`,
        max: sql<number>`max(x.v)`,
        sum: sql<number>`sum(x.v)`,
      })
      .from(rows)
      .where(isFresh)
      .groupBy(sql`d.t`)
      .prepare()
  }
  const plain = sql`select d.t, ${OF_MEASUREMENTS} from ${rows} where ${isFresh} group by d.t`
  return sumsFrom(
    db,
    [plain],
    [
      packed(
        sql`telemetry_runs r`,
        sql`${inRange('r')} and r.t >= ${summarisedUntil('hours')} and not ${isSummarised('hours')}`,
      ),
      packed(
        sql`telemetry_dirty d cross join telemetry_runs r`,
        sql`${inRange('d')} and d.metric = ${sql.raw(String(WHOLE_RUN))} and r.node_id = d.node_id and r.t = d.t
        and ${isSummarised('hours')}`,
      ),
    ],
  )
}

const readRaw = (db: Db, isPacked: boolean, isSeen = ANY, isPackedSeen = ANY) => {
  const plain = sql`select t, v from telemetry where ${and(isInRange(telemetry), isSeen)}`
  const rows = isPacked ? sql`${plain} union all ${packedRaw(isPackedSeen)}` : plain
  const query = db.select({ t: sql<number>`x.t`, v: sql<number>`x.v` }).from(sql`(${rows}) x`)
  return (isPacked ? query : query.orderBy(sql`x.t`)).prepare()
}

const readRollUp = (db: Db, table: typeof telemetryHourly | typeof telemetryDaily, packed: readonly SQL[]) =>
  packed.length > 0
    ? sumsFrom(db, [sql`select t, n, min, max, sum from ${table} where ${isInRange(table)}`], packed)
    : db
        .select({ t: table.t, n: table.n, min: table.min, max: table.max, sum: table.sum })
        .from(table)
        .where(isInRange(table))
        .orderBy(table.t)
        .prepare()

const inRows = (from: SQL, which: SQL, isIn: SQL) => sql`select e.key + 0 from ${from} cross join json_each(r.body) e
  where e.type = 'object' and ${which} and exists (select 1 from json_each(e.value) x where x.type = 'array' and ${isIn})`

const inForm = ({ table }: RunForm, since: SQL, isIn = sql`true`) =>
  inRows(sql`${sql.raw(table)} r`, sql`r.node_id = ${value('nodeId')} and r.t >= ${since}`, isIn)

/** The packed metrics of a node: of days, of hours of days that are not over, and of hours not summarised yet. */
const PACKED_OF_NODE = sql`${inForm(DAILY_RUNS, sql`0`)} union all ${inForm(HOURLY_RUNS, summarisedUntil('days'))}
  union all ${inForm(RUNS, summarisedUntil('hours'))} union all ${inRows(
    sql`telemetry_dirty d cross join telemetry_runs r`,
    sql`d.node_id = ${value('nodeId')} and d.metric = ${sql.raw(String(WHOLE_RUN))} and r.node_id = d.node_id and r.t = d.t`,
    sql`true`,
  )}`

const prepareQueries = (db: Db, isPacked: boolean) => ({
  metric: db
    .select({ id: metrics.id })
    .from(metrics)
    .where(eq(metrics.name, value('name')))
    .prepare(),
  all: db.select({ metric: metrics.name }).from(metrics).orderBy(metrics.name).prepare(),
  // One look-up by the start of the primary key for each metric, regardless of the number of rows.
  ofNode: db
    .select({ metric: metrics.name })
    .from(metrics)
    .where(
      sql`exists (select 1 from telemetry x where x.node_id = ${value('nodeId')} and x.metric = metrics.id)
        or exists (select 1 from telemetry_daily x where x.node_id = ${value('nodeId')} and x.metric = metrics.id)
        ${isPacked ? sql`or metrics.id in (${PACKED_OF_NODE})` : sql``}`,
    )
    .orderBy(metrics.name)
    .prepare(),
  raw: readRaw(db, isPacked),
  hour: readRollUp(db, telemetryHourly, isPacked ? [packedSums(HOURLY_RUNS, ANY)] : []),
  day: readRollUp(db, telemetryDaily, isPacked ? [packedSums(DAILY_RUNS, ANY), packedDaysBegun(ANY)] : []),
  // Summarises hours that have no summary yet.
  fresh: readFresh(db, isPacked),
})

const inSeenHour = visible(sql`${measurementOf('x').channel}`)
const inSeenSummary = visible(sql`${summaryOf('x').channel}`)
const isSeenHour = visible(sql`${MEASUREMENT.channel}`)
const isSeenSummary = visible(sql`${SUMMARY.channel}`)

const SEEN_OF_NODE = sql`${inForm(DAILY_RUNS, sql`0`, inSeenSummary)}
  union all ${inForm(HOURLY_RUNS, summarisedUntil('days'), inSeenSummary)} union all ${inForm(RUNS, sql`0`, inSeenHour)}`
const SEEN_OF_ALL = sql`${packedOfAll(
  sql`telemetry_daily_runs r on r.node_id = n.id`,
  sql`select 1 from json_each(e.value) x where ${inSeenSummary}`,
)} union all ${packedOfAll(
  sql`telemetry_hourly_runs r on r.node_id = n.id and r.t >= ${summarisedUntil('days')}`,
  sql`select 1 from (select ${oneChannel(sql`${summaryOf('x').channel}`)} as channel from json_each(e.value) x) y
            where ${visible(sql`y.channel`)}`,
)}`

/** The same for views without all channels. */
const prepareSeen = (db: Db, isPacked: boolean) => ({
  ofNode: db
    .select({ metric: metrics.name })
    .from(metrics)
    .where(
      sql`exists (select 1 from telemetry x where x.node_id = ${value('nodeId')} and x.metric = metrics.id
          and ${onVisibleChannel(sql`x.channel`)})
        or exists (select 1 from telemetry_daily x where x.node_id = ${value('nodeId')} and x.metric = metrics.id
          and ${onVisibleChannel(sql`x.channel`)})
        ${isPacked ? sql`or metrics.id in (${SEEN_OF_NODE})` : sql``}`,
    )
    .orderBy(metrics.name)
    .prepare(),
  // Reads the daily rows. For a metric on none of the channels, it reads all of them.
  all: db
    .select({ metric: metrics.name })
    .from(metrics)
    .where(
      sql`exists (select 1 from nodes n cross join telemetry_daily x on x.node_id = n.id and x.metric = metrics.id
        where ${onVisibleChannel(sql`x.channel`)} and ${ofVisibleNodes(sql`n.node_num`)})
        ${isPacked ? sql`or metrics.id in (${SEEN_OF_ALL})` : sql``}`,
    )
    .orderBy(metrics.name)
    .prepare(),
  raw: readRaw(db, isPacked, onVisibleChannel(telemetry.channel), isSeenHour),
  hour: seenSums(
    db,
    { table: telemetryHourly, below: telemetry, spanMs: HOUR_MS, sums: OF_MEASUREMENTS },
    isPacked
      ? [packedSums(HOURLY_RUNS, isSeenSummary), packedMixed(HOURLY_RUNS, RUNS, OF_PACKED, sql`${MEASUREMENT.channel}`)]
      : [],
  ),
  day: seenSums(
    db,
    { table: telemetryDaily, below: telemetryHourly, spanMs: DAY_MS, sums: OF_HOURS },
    isPacked
      ? [
          packedSums(DAILY_RUNS, isSeenSummary),
          packedMixed(DAILY_RUNS, HOURLY_RUNS, OF_PACKED_HOURS, sql`${SUMMARY.channel}`),
          packedDaysBegun(isSeenSummary),
        ]
      : [],
  ),
  fresh: readFresh(db, isPacked, onVisibleChannel(sql`x.channel`), isSeenHour),
})

const queries = {
  plain: prepareOnce((db) => prepareQueries(db, false)),
  both: prepareOnce((db) => prepareQueries(db, true)),
  seenOfPlain: prepareOnce((db) => prepareSeen(db, false)),
  seenOfBoth: prepareOnce((db) => prepareSeen(db, true)),
}

/**
 * The queries of charts and of the lists of metrics, for all channels or some. If there are packed rows, they read both
 * forms, one after the other.
 */
export async function queriesFor(store: Store, seesAll: boolean) {
  const isPacked = await hasRuns(store)
  const { plain, both, seenOfPlain, seenOfBoth } = queries
  const whole = (isPacked ? both : plain)(store)
  return { isPacked, ...whole, ...(seesAll ? {} : (isPacked ? seenOfBoth : seenOfPlain)(store)) }
}

/** The metrics in these packed rows `r` of any node. `isSeen`: the condition on their entries `e`. */
function packedOfAll(rows: SQL, isSeen: SQL): SQL {
  return sql`select e.key + 0 from nodes n cross join ${rows} cross join json_each(r.body) e
    where ${ofVisibleNodes(sql`n.node_num`)} and exists (${isSeen})`
}
