import { getTableColumns, getTableName, type Placeholder, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Db } from '../../db/store.ts'
import { partOf, type Share } from '../base/pacing/slice-share.ts'

/** Rows that one slice looks at. */
const SLICE_ROWS = 2000
/** The lengths of spans, as multiples of the first one. Only one row of each span stays. */
const SPANS = [1, 10, 60, 300, 3600] as const

/** By how many rows an owner exceeds its share. */
export type Part = { readonly owner: number; readonly excess: number }

type Run = { readonly pause: () => Promise<boolean>; readonly share: Share }

const value: (name: string) => Placeholder = sql.placeholder
const { raw } = sql

/** Queries on a history of nodes by `node_id`, `t` and possibly `metric`; `firstSpan` in milliseconds. */
export function prepareThinning(db: Db, table: SQLiteTable, firstSpan: number) {
  const name = raw(getTableName(table))
  const isByMetric = Object.hasOwn(getTableColumns(table), 'metric')
  const isOfChart = isByMetric
    ? sql`node_id = ${value('owner')} and metric = ${value('chart')}`
    : sql`node_id = ${value('owner')} and 0 = ${value('chart')}`
  const next = (after: Placeholder | ReturnType<typeof raw>) => sql`(select min(metric) from ${name}
    where node_id = ${value('owner')} and metric > ${after})`
  return {
    firstSpan,
    charts: isByMetric
      ? db
          .select({ chart: sql<number>`c.k` })
          .from(
            sql`(with recursive step(k) as (select ${next(value('none'))} union all
              select ${next(raw('step.k'))} from step where step.k is not null)
              select k from step where k is not null) c`,
          )
          .prepare()
      : null,
    times: db
      .select({ t: sql<number>`t` })
      .from(table)
      .where(sql`${isOfChart} and t > ${value('after')}`)
      .orderBy(sql`t`)
      .limit(value('rows'))
      .prepare(),
    remove: db
      .delete(table)
      .where(sql`${isOfChart} and t in (select value from json_each(${value('times')}))`)
      .prepare(),
  }
}

/**
 * Keeps one row in each interval of time, with growing intervals, until `excess` rows are deleted: frequent reports
 * become rare, but none disappears completely. Returns the number of deleted rows.
 */
export async function thinOut(
  run: Run,
  thinning: ReturnType<typeof prepareThinning>,
  { owner, excess }: Part,
): Promise<number> {
  const charts = (await thinning.charts?.all({ owner, none: -1 })) ?? [{ chart: 0 }]
  let left = excess
  for (const factor of SPANS) {
    const span = thinning.firstSpan * factor
    for (const { chart } of charts) {
      let kept: number | null = null
      for (let after: number | undefined = -1; after !== undefined && left > 0;) {
        const rows = partOf(SLICE_ROWS, run.share())
        const times = await thinning.times.all({ owner, chart, after, rows })
        const crowded: number[] = []
        for (const { t } of times) {
          const here: number = Math.floor(t / span)
          if (here === kept && crowded.length < left) crowded.push(t)
          kept = here
        }
        if (crowded.length > 0) await thinning.remove.run({ owner, chart, times: JSON.stringify(crowded) })
        left -= crowded.length
        after = times.length < rows ? undefined : times.at(-1)?.t
        if (!(await run.pause())) return excess - left
      }
    }
  }
  return excess - left
}
