import { getTableName, type Placeholder, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { literals } from '../../../../db/json-rows.ts'
import { RUNS_OF } from '../../../../db/runs.ts'
import {
  forgottenNodes,
  positions,
  rowCounts,
  telemetry,
  telemetryDaily,
  telemetryDailyRuns,
  telemetryDirty,
  telemetryHourly,
  telemetryHourlyRuns,
  telemetryRuns,
} from '../../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../../db/store.ts'
import { namesOf } from '../../../../shared/names.ts'
import { partOf, type Share, wholeSlices } from '../../../base/pacing/slice-share.ts'

/** Nodes whose history is deleted together. */
const SLICE_NODES = 100
/** Rows deleted in one transaction at most. */
const SLICE_ROWS = 1000

// The order matters: a simultaneous roll-up copies rows of a deleted node only into later tables, where they are found.
const HISTORIES = [
  [telemetryDirty, 'metric, t'],
  [telemetry, 'metric, t'],
  [telemetryRuns, 't'],
  [telemetryHourly, 'metric, t'],
  [telemetryHourlyRuns, 't'],
  [telemetryDaily, 'metric, t'],
  [telemetryDailyRuns, 't'],
  [positions, 't'],
] as const

const value: (name: string) => Placeholder = sql.placeholder
const isAmongKeys = sql`node_id in (select value from json_each(${value('keys')}))`

const queries = prepareOnce((db) => ({
  next: db
    .select({ id: forgottenNodes.nodeId })
    .from(forgottenNodes)
    // An id is live as long as a node has it; a backup may claim otherwise.
    .where(sql`not exists (select 1 from nodes where id = ${forgottenNodes.nodeId})`)
    .orderBy(forgottenNodes.nodeId)
    .limit(value('nodes'))
    .prepare(),
  histories: HISTORIES.map(([table, key]) => prepareDelete(db, table, key)),
  // Nothing else counts packed rows down.
  uncount: db
    .delete(rowCounts)
    .where(
      sql`table_name in (${literals(namesOf(RUNS_OF).map((name) => RUNS_OF[name].table))})
        and owner in (select value from json_each(${value('keys')}))`,
    )
    .prepare(),
  settle: db
    .delete(forgottenNodes)
    .where(sql.join([isAmongKeys, ...HISTORIES.map(([table]) => isEmpty(table))], sql` and `))
    .prepare(),
}))

function isEmpty(table: SQLiteTable) {
  return sql`not exists (select 1 from ${sql.raw(getTableName(table))} x where x.node_id = forgotten_nodes.node_id)`
}

function prepareDelete(db: Db, table: SQLiteTable, key: string) {
  const name = sql.raw(getTableName(table))
  return db
    .delete(table)
    .where(
      sql`(node_id, ${sql.raw(key)}) in (select node_id, ${sql.raw(key)} from json_each(${value('keys')}) k
        cross join ${name} x on x.node_id = k.value limit ${value('rows')})`,
    )
    .returning({ t: sql<number>`t` })
    .prepare()
}

/**
 * Deletes the remaining history of deleted nodes, in slices; awaits `pause` after each, which returns whether to
 * continue. The next run continues with the rest. A node that is heard again has another id. Returns the number of
 * deleted rows.
 */
export async function sweepForgotten(
  store: Store,
  pause: () => Promise<boolean>,
  share: Share = wholeSlices,
): Promise<number> {
  const { next, histories, uncount, settle } = queries(store)
  for (let deleted = 0; ;) {
    const nodes = await next.all({ nodes: partOf(SLICE_NODES, share()) })
    if (nodes.length === 0) return deleted
    const keys = JSON.stringify(nodes.map(({ id }) => id))
    for (const history of histories) {
      for (let isLeft = true; isLeft;) {
        const rows = partOf(SLICE_ROWS, share())
        const { length } = await history.all({ keys, rows })
        deleted += length
        isLeft = length === rows
        if (length > 0 && !(await pause())) return deleted
      }
    }
    await uncount.run({ keys })
    await settle.run({ keys })
    if (!(await pause())) return deleted
  }
}
