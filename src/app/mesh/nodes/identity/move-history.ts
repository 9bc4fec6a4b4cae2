import { getTableColumns, getTableName, type Placeholder, sql, type SQL } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { DAILY_RUNS, HOURLY_RUNS, type RunForm, RUNS, WHOLE_RUN } from '../../../../db/runs.ts'
import {
  positions,
  telemetry,
  telemetryDaily,
  telemetryDailyRuns,
  telemetryDirty,
  telemetryHourly,
  telemetryHourlyRuns,
  telemetryRuns,
} from '../../../../db/schema.ts'
import { bind, type Db, prepareOnce, type Store } from '../../../../db/store.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import { partOf, type Share } from '../../../base/pacing/slice-share.ts'

/** Rows moved in one transaction at most. */
const SLICE_ROWS = 500

const value: (name: string) => Placeholder = sql.placeholder

/** Moves the rows of one node from before `before`, in milliseconds, to another. */
export type Move = { readonly from: number; readonly to: number; readonly before: number }

// Summaries first: an hour that both nodes have is recalculated from its measurements, and its day from the hours.
const queries = prepareOnce((db) => [
  prepareMove(db, telemetryHourly, { perMetric: true }),
  prepareMove(db, telemetryDaily, { perMetric: true }),
  prepareMove(db, positions, { perMetric: false }),
  { ...prepareMove(db, telemetry, { perMetric: true }), dirty: prepareDirty(db) },
  prepareMoveOfRuns(db, telemetryHourlyRuns, HOURLY_RUNS),
  prepareMoveOfRuns(db, telemetryDailyRuns, DAILY_RUNS),
  { ...prepareMoveOfRuns(db, telemetryRuns, RUNS), dirty: prepareDirtyOfRuns(db) },
])

/** The next rows in the order of the primary key, so that all statements of a slice select the same ones. */
function sliceOf(table: SQLiteTable, { perMetric, columns }: { perMetric: boolean; columns: SQL }): SQL {
  const name = sql.raw(getTableName(table))
  const ofNode = perMetric
    ? sql`cross join metrics m cross join ${name} x on x.node_id = a.id and x.metric = m.id`
    : sql`cross join ${name} x on x.node_id = a.id`
  return sql`select ${columns} from nodes a cross join nodes b on b.node_num = ${value('to')} ${ofNode}
    where a.node_num = ${value('from')} and x.t < ${value('before')}
    order by ${perMetric ? sql`m.id, x.t` : sql`x.t`} limit ${value('rows')}`
}

function prepareMove(db: Db, table: SQLiteTable, { perMetric }: { perMetric: boolean }) {
  const columns = Object.values(getTableColumns(table)).map(({ name }) =>
    sql.raw(name === 'node_id' ? 'b.id' : `x.${name}`),
  )
  const key = perMetric ? sql`node_id, metric, t` : sql`node_id, t`
  const keyOfSlice = perMetric ? sql`x.node_id, x.metric, x.t` : sql`x.node_id, x.t`
  const slice = (selected: SQL) => sliceOf(table, { perMetric, columns: selected })
  return {
    any: db
      .select({ t: sql<number>`t` })
      .from(sql`(${slice(sql`x.t`)})`)
      .prepare(),
    // An existing row stays: it is the same measurement, or a summary that is recalculated.
    insert: db
      .insert(table)
      .select(sql`select * from (${slice(sql.join(columns, sql`, `))}) where true on conflict do nothing`)
      .prepare(),
    delete: db
      .delete(table)
      .where(sql`(${key}) in (${slice(keyOfSlice)})`)
      .prepare(),
    divide: null,
    dirty: null,
  }
}

function prepareDirty(db: Db) {
  const columns = sql`b.id as node_id, x.metric as metric, x.t - x.t % ${sql.raw(String(HOUR_MS))} as t`
  return db
    .insert(telemetryDirty)
    .select(
      sql`select distinct node_id, metric, t from (${sliceOf(telemetry, { perMetric: true, columns })})
        where true on conflict do nothing`,
    )
    .prepare()
}

type RunTable = typeof telemetryRuns | typeof telemetryHourlyRuns | typeof telemetryDailyRuns

/** The next packed rows `x` of which a part is from before `before`. */
function sliceOfRuns({ table, rowMs, stepMs }: RunForm, columns: SQL): SQL {
  return sql`select ${columns} from nodes a cross join nodes b on b.node_num = ${value('to')}
    cross join ${sql.raw(table)} x on x.node_id = a.id where a.node_num = ${value('from')} and x.t < ${value('before')}
    and (x.t + ${sql.raw(String(rowMs))} <= ${value('before')} or exists (select 1 from json_each(x.body) m
      cross join json_each(m.value) e where x.t + e.key * ${sql.raw(String(stepMs))} < ${value('before')}))
    order by x.t limit ${value('rows')}`
}

/** As `prepareMove`: a row that is in part from before `before` is divided. */
function prepareMoveOfRuns(db: Db, table: RunTable, form: RunForm) {
  const part = (of: string, isIn: string) => {
    const t = sql.raw(`${of}.t + e.key * ${form.stepMs} ${isIn}`)
    return sql`(select json_group_object(g.metric, json(g.entries)) from (select m.key as metric,
      (select json_group_object(e.key, json(e.value)) from json_each(m.value) e where ${t} ${value('before')}) as entries
      from json_each(${sql.raw(of)}.body) m) g where g.entries <> '{}')`
  }
  const inSlice = sql`(node_id, t) in (${sliceOfRuns(form, sql`x.node_id, x.t`)})`
  return {
    any: db
      .select({ t: sql<number>`t` })
      .from(sql`(${sliceOfRuns(form, sql`x.t`)})`)
      .prepare(),
    // What is there stays.
    insert: db
      .insert(table)
      .select(
        sql`select * from (${sliceOfRuns(form, sql`b.id, x.t, ${part('x', '<')}`)}) where true
          on conflict (node_id, t) do update set body = json_patch(excluded.body, body)`,
      )
      .prepare(),
    divide: db
      .update(table)
      .set({ body: part(form.table, '>=') })
      .where(inSlice)
      .prepare(),
    delete: db
      .delete(table)
      .where(sql`body = '{}' and ${inSlice}`)
      .prepare(),
    dirty: null,
  }
}

function prepareDirtyOfRuns(db: Db) {
  return db
    .insert(telemetryDirty)
    .select(
      sql`select * from (${sliceOfRuns(RUNS, sql`b.id, ${sql.raw(String(WHOLE_RUN))}, x.t`)}) where true
        on conflict do nothing`,
    )
    .prepare()
}

/**
 * Moves positions and measurements in slices; awaits `pause` after each, which returns whether to continue. Returns
 * whether everything is moved. If it is repeated, interrupted or run twice at the same time, each row still moves once.
 */
export async function moveHistory(
  store: Store,
  move: Move,
  pause: () => Promise<boolean>,
  share: Share,
): Promise<boolean> {
  for (const table of queries(store)) {
    while ((await table.any.get({ ...move, rows: 1 })) !== undefined) {
      const values = { ...move, rows: partOf(SLICE_ROWS, share()) }
      const marks = table.dirty === null ? [] : [bind(table.dirty, values)]
      const divided = table.divide === null ? [] : [bind(table.divide, values)]
      await store.atomic([bind(table.insert, values), ...marks, ...divided, bind(table.delete, values)])
      if (!(await pause())) return false
    }
  }
  return true
}
