import { sql, type SQL } from 'drizzle-orm'
import {
  DAILY_RUNS,
  hasRuns,
  HOURLY_RUNS,
  isSummarised,
  measurementOf,
  prepareCount,
  type RunForm,
  RUNS,
  summaryOf,
  WHOLE_RUN,
} from '../../../db/runs.ts'
import { telemetryDailyRuns, telemetryDirty, telemetryHourlyRuns, telemetryPlaces } from '../../../db/schema.ts'
import { bind, type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { partOf, type Share } from '../../base/pacing/slice-share.ts'
import { oneChannel } from './one-channel.ts'

/** Packed hours or days summarised in one transaction at most. */
const SLICE_RUNS = 60

type Run = { readonly nodeId: number; readonly t: number }
type Place = 'hours' | 'days'

const value = sql.placeholder
const { raw } = sql

const KEYS = sql`(select value ->> 'nodeId' as node_id, value ->> 't' as t from json_each(${value('keys')}))`

// By their range: another isolate may have added some since they were looked for. See `rangeTo`.
const rangeOf = ({ table }: RunForm) => sql`(select n.id as node_id, o.t as t from nodes n
  cross join ${raw(table)} o on o.node_id = n.id and o.t >= ${value('fromT')} and o.t <= ${value('t')}
  where n.id > ${value('low')} and n.id <= ${value('high')} and (o.t, n.id) > (${value('fromT')}, ${value('fromNodeId')})
  and (o.t, n.id) <= (${value('t')}, ${value('nodeId')}))`

const daysOfRange = sql`(select distinct node_id, t - t % ${raw(String(DAY_MS))} as t from ${rangeOf(RUNS)})`

// As KEEP_THE_FULLER: only what has as many measurements as the stored summary replaces it.
function keepTheFuller({ table }: RunForm): SQL {
  const stored = sql`${raw(table)}.body ->> ('$."' || m.key || '"."' || h.key || '"[0]')`
  return sql`on conflict (node_id, t) do update set body = json_patch(body, (
    select json_group_object(f.metric, json(f.kept)) from (select m.key as metric,
      (select json_group_object(h.key, json(h.value)) from json_each(m.value) h where h.value ->> 0 >= coalesce(${stored}, 0))
        as kept from json_each(excluded.body) m) f where f.kept <> '{}'))`
}

type RollUp = {
  readonly from: RunForm
  readonly to: RunForm
  /** The summary of the entries `x`; n comes first. */
  readonly sums: { readonly n: SQL; readonly min: SQL; readonly max: SQL; readonly sum: SQL }
  /** The last value, of the entry `y`. */
  readonly last: SQL
  readonly channel: SQL
  readonly only: SQL
}

/** Keys of rows: a table with `node_id` and `t`. */
type Keys = SQL

/** Summarises the rows of `from` with these keys, each metric of a row as one entry, into the rows of `to`. */
function prepareRollUp(db: Db, keys: Keys, { from, to, sums: { n, min, max, sum }, last, channel, only }: RollUp) {
  const target = to === DAILY_RUNS ? telemetryDailyRuns : telemetryHourlyRuns
  const [rowMs, stepMs] = [raw(String(to.rowMs)), raw(String(to.stepMs))]
  const latest = sql`(select ${last} from json_each(m.value) y where y.type = 'array' order by y.key + 0 desc limit 1)`
  const entry = sql`(select iif(${n} = 1, json_array(1, ${oneChannel(channel)}, ${latest}),
    json_array(${n}, ${oneChannel(channel)}, ${latest}, ${min}, ${max}, ${sum})) from json_each(m.value) x where x.type = 'array')`
  return db
    .insert(target)
    .select(
      sql`select node_id, begun, json_group_object(metric, json(entries)) from (
        select node_id, begun, metric, json_group_object(cast(step as text), json(entry)) as entries from (
          select r.node_id as node_id, r.t - r.t % ${rowMs} as begun, m.key as metric, r.t % ${rowMs} / ${stepMs} as step,
            ${entry} as entry
          from ${keys} k cross join ${raw(from.table)} r on r.node_id = k.node_id and r.t = k.t
          cross join json_each(r.body) m where m.type = 'object' and ${only})
        where entry ->> 0 > 0 group by node_id, begun, metric) where true group by node_id, begun ${keepTheFuller(to)}`,
    )
    .prepare()
}

const UNLESS_FURTHER = sql`on conflict (name) do update
  set t = excluded.t, node_id = excluded.node_id where (excluded.t, excluded.node_id) > (t, node_id)`

/** Where the work goes on, by rows of a table in the order of their times. */
function prepareWay(db: Db, form: RunForm) {
  const { table } = form
  return {
    // One look for each node.
    nodes: db
      .select({ nodeId: sql<number>`n.id` })
      .from(sql`nodes n cross join ${raw(table)} r on r.node_id = n.id and r.t = ${value('t')}`)
      .where(sql`n.id > ${value('nodeId')}`)
      .orderBy(sql`n.id`)
      .limit(value('most'))
      .prepare(),
    // What another isolate has added since it was looked for is for the next run.
    goToEnd: db
      .insert(telemetryPlaces)
      .select(
        sql`select ${value('name')}, ${value('t')}, ${value('nodeId')} where not exists (select 1 from ${rangeOf(form)})
          ${UNLESS_FURTHER}`,
      )
      .prepare(),
    next: db
      .select({
        t: sql<number | null>`min((select min(r.t) from ${raw(table)} r where r.node_id = n.id
          and r.t >= ${value('t')} + (n.id <= ${value('nodeId')})))`,
      })
      .from(sql`nodes n`)
      .prepare(),
  }
}

const x = { ...measurementOf('x'), hour: summaryOf('x') }

const HOURS: RollUp = {
  from: RUNS,
  to: HOURLY_RUNS,
  sums: { n: sql`count(*)`, min: sql`min(${x.v})`, max: sql`max(${x.v})`, sum: sql`sum(${x.v})` },
  last: measurementOf('y').v,
  channel: sql`${x.channel}`,
  only: sql`true`,
}
// Days that no pass has reached have all of their hours when it comes.
const DAYS: RollUp = {
  from: HOURLY_RUNS,
  to: DAILY_RUNS,
  sums: {
    n: sql`sum(${x.hour.n})`,
    min: sql`min(${x.hour.min})`,
    max: sql`max(${x.hour.max})`,
    sum: sql`sum(${x.hour.sum})`,
  },
  last: summaryOf('y').last,
  channel: sql`${x.hour.channel}`,
  only: isSummarised('days'),
}

const queries = prepareOnce((db) => ({
  places: db.select().from(telemetryPlaces).prepare(),
  late: db
    .select({ nodeId: telemetryDirty.nodeId, t: telemetryDirty.t })
    .from(telemetryDirty)
    .where(sql`metric = ${raw(String(WHOLE_RUN))} and t < ${value('before')}`)
    .limit(value('most'))
    .prepare(),
  clean: db
    .delete(telemetryDirty)
    .where(
      sql`(node_id, metric, t) in (select value ->> 'nodeId', ${raw(String(WHOLE_RUN))}, value ->> 't'
        from json_each(${value('keys')}))`,
    )
    .prepare(),
  goTo: db
    .insert(telemetryPlaces)
    .select(sql`select ${value('name')}, ${value('t')}, ${value('nodeId')} where true ${UNLESS_FURTHER}`)
    .prepare(),
  hours: {
    ...prepareWay(db, RUNS),
    rollUp: prepareRollUp(db, KEYS, HOURS),
    rollUpRange: prepareRollUp(db, rangeOf(RUNS), HOURS),
  },
  days: {
    ...prepareWay(db, HOURLY_RUNS),
    rollUp: prepareRollUp(db, KEYS, DAYS),
    rollUpRange: prepareRollUp(db, rangeOf(HOURLY_RUNS), DAYS),
    rollUpOfHours: prepareRollUp(db, daysOfRange, DAYS),
  },
  // Other days are counted when they are over.
  countLate: prepareCount(
    db,
    sql`(select distinct r.node_id from ${KEYS} r where ${isSummarised('days')}) k`,
    sql`k.node_id`,
  ),
  count: prepareCount(db, sql`(select distinct node_id from ${rangeOf(HOURLY_RUNS)}) k`, sql`k.node_id`),
}))

type Work = {
  readonly store: Store
  readonly pause: () => Promise<boolean>
  readonly share: Share
}

/**
 * Summarises packed hours and days, in slices; awaits `pause` after each, which returns whether to continue. They are
 * found by a place, and hours before it, to which something was added, by `telemetry_dirty`. Days wait until they are
 * over. `before` as in `rollUp`. Returns the number of hours. What arrives at the same time comes before the place, or it
 * is noted.
 */
export async function rollUpRuns(
  store: Store,
  pause: () => Promise<boolean>,
  share: Share,
  before: number,
): Promise<number> {
  if (!(await hasRuns(store))) return 0
  const work = { store, pause, share }
  const late = await rollUpLate(work, before)
  const hours = late.goesOn ? await passOver(work, 'hours', before) : { rows: 0, goesOn: false }
  if (hours.goesOn) await passOver(work, 'days', before - (before % DAY_MS))
  return late.rows + hours.rows
}

type Done = { readonly rows: number; readonly goesOn: boolean }

async function rollUpLate({ store, pause, share }: Work, before: number): Promise<Done> {
  const { late, hours, days, countLate, clean } = queries(store)
  for (let rows = 0; ;) {
    const runs: Run[] = await late.all({ before, most: partOf(SLICE_RUNS, share()) })
    if (runs.length === 0) return { rows, goesOn: true }
    const done = { keys: JSON.stringify(runs) }
    const ofDays = { keys: JSON.stringify(daysOf(runs)) }
    await store.atomic(
      [bind(hours.rollUp, done), bind(days.rollUp, ofDays), bind(countLate, ofDays), bind(clean, done)],
      'lazily',
    )
    rows += runs.length
    if (!(await pause())) return { rows, goesOn: false }
  }
}

/** From the place on, one hour or day after the other, up to the last one that begins before `before`. */
async function passOver({ store, pause, share }: Work, name: Place, before: number): Promise<Done> {
  const { places, goTo, days, count, [name]: way } = queries(store)
  const spanMs = name === 'hours' ? HOUR_MS : DAY_MS
  const begun = (await places.all()).find((place) => place.name === name)
  let { t, nodeId } = begun ?? { t: -spanMs, nodeId: 0 }
  let from = { t, nodeId }
  // All of them are done, and so is what comes later.
  const end = { t: before - 1 - ((before - 1) % spanMs), nodeId: Number.MAX_SAFE_INTEGER }
  for (let rows = 0; ;) {
    if (t > end.t || (t === end.t && nodeId === end.nodeId)) return { rows, goesOn: true }
    const nodes = await way.nodes.all({ t, nodeId, most: partOf(SLICE_RUNS, share()) })
    const last = nodes.at(-1)
    if (last === undefined) {
      const next = (await way.next.get({ t, nodeId: Number.MAX_SAFE_INTEGER }))?.t ?? null
      if (next !== null && next <= end.t) {
        t = next
        nodeId = 0
        continue
      }
      if (before < Number.MAX_SAFE_INTEGER - DAY_MS) await way.goToEnd.run({ name, ...rangeTo(from, end) })
      return { rows, goesOn: true }
    }
    nodeId = last.nodeId
    const range = rangeTo(from, { t, nodeId })
    // The place first: a day is summarised up to it.
    await store.atomic(
      [
        bind(goTo, { name, t, nodeId }),
        bind(way.rollUpRange, range),
        name === 'hours' ? bind(days.rollUpOfHours, range) : bind(count, range),
      ],
      'lazily',
    )
    from = { t, nodeId }
    rows += nodes.length
    if (!(await pause())) return { rows, goesOn: false }
  }
}

/** What is after `from`, up to `to`; within an hour or day only these nodes are looked at. */
function rangeTo(from: Run, to: Run) {
  const [low, high] = from.t === to.t ? [from.nodeId, to.nodeId] : [0, Number.MAX_SAFE_INTEGER]
  return { fromT: from.t, fromNodeId: from.nodeId, ...to, low, high }
}

/** The days of these hours, each once. */
function daysOf(hours: readonly Run[]): Run[] {
  const days = new Map<string, Run>()
  for (const { nodeId, t } of hours) {
    const day = t - (t % DAY_MS)
    days.set(`${nodeId} ${day}`, { nodeId, t: day })
  }
  return [...days.values()]
}

/** The oldest packed hour before `before` that no pass has reached, and perhaps a later one; null: none. */
export async function oldestUnsummarisedRun(store: Store, before: number): Promise<number | null> {
  if (!(await hasRuns(store))) return null
  const { places, hours } = queries(store)
  const { t, nodeId } = (await places.all()).find(({ name }) => name === 'hours') ?? { t: 0, nodeId: 0 }
  return t >= before ? null : ((await hours.next.get({ t, nodeId }))?.t ?? null)
}
