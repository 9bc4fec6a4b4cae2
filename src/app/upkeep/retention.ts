import { sql, type SQL } from 'drizzle-orm'
import { nodes, positions } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import { deleteOldMessages } from './old-messages.ts'
import { beginPass, endPass, leaveAt } from '../base/pacing/sweeps.ts'
import { sweepCharts } from './charts.ts'

/** Rows deleted in one transaction at most. A message is in several indexes. */
const SLICE_ROWS = { positions: 1000, messages: 590 } as const
/** Nodes whose positions one look-up searches, at most. */
const SLICE_NODES = 200

type Table = 'telemetry' | 'positions' | 'messages'
/** Data older than these times, in milliseconds, is deleted. */
export type Cutoffs = Readonly<Record<Table, number>>

export type Deleted = Readonly<Record<Table, number>>

const placeholder = (name: string): SQL => sql`${sql.placeholder(name)}`
const slice = sql`limit ${placeholder('rows')}`

// Positions have no index on time alone: the node comes first in the primary key.
const queries = prepareOnce((db) => ({
  nodesAfter: db
    .select({ id: nodes.id })
    .from(nodes)
    .where(sql`${nodes.id} > ${sql.placeholder('after')}`)
    .orderBy(nodes.id)
    .limit(sql.placeholder('nodes'))
    .prepare(),
  positions: db
    .delete(positions)
    .where(
      sql`(node_id, t) in (select x.node_id, x.t from nodes n cross join positions x on x.node_id = n.id
        where n.id > ${placeholder('after')} and n.id <= ${placeholder('upTo')} and x.t < ${placeholder('cutoff')} ${slice})`,
    )
    .returning({ t: positions.t })
    .prepare(),
}))

/** How a run shares its time between tables, where it cannot get through all of them. */
export type Shares = {
  /** A `pause` of its own for each table, so that none takes the time of the others; absent: they share one. */
  readonly each?: () => Pause
  /** A table that was worked through is left alone while its cutoff moves by less than this. */
  readonly restMs?: number
}

/**
 * Deletes data older than the cutoffs, in slices of at most `SLICE_ROWS`; awaits `pause` after each, which returns whether
 * to continue. The next run continues where this one stopped. Returns the number of deleted rows.
 */
export async function deleteExpired(
  store: Store,
  cutoffs: Cutoffs,
  pause: Pause,
  share: Share = wholeSlices,
  { each, restMs = 0 }: Shares = {},
): Promise<Deleted> {
  const prepared = queries(store)
  const deleted = { telemetry: 0, positions: 0, messages: 0 }
  /** False: stop before the table is done. */
  const clear = async (table: 'positions' | 'messages', deleteSlice: Parameters<typeof inSlices>[0], own: Pause) => {
    const done = await inSlices(deleteSlice, { full: SLICE_ROWS[table], pause: own, share })
    deleted[table] += done.rows
    return done.goesOn
  }
  const sweepTelemetry = async (own: Pause): Promise<boolean> => {
    const { rows, goesOn } = await sweepCharts(
      store,
      { table: 'telemetry', cutoff: cutoffs.telemetry, restMs },
      { pause: own, share },
    )
    deleted.telemetry = rows
    return goesOn
  }
  const sweepPositions = async (own: Pause): Promise<boolean> => {
    const pass = await beginPass(store, 'positions', cutoffs.positions, restMs)
    if (pass === null) return true
    for (let after = typeof pass.place === 'number' ? pass.place : 0; ;) {
      const upTo = (await prepared.nodesAfter.all({ after, nodes: partOf(SLICE_NODES, share()) })).at(-1)?.id
      if (upTo === undefined) {
        await endPass(store, 'positions')
        return true
      }
      const range = { after, upTo, cutoff: pass.cutoff }
      const remove = (rows: number) => store.lazily(() => prepared.positions.all({ ...range, rows }))
      if (await clear('positions', remove, own)) {
        after = upTo
        if (await own()) continue
      }
      await leaveAt(store, 'positions', after)
      return false
    }
  }
  const deleteMessages = (rows: number) => deleteOldMessages(store, { cutoff: cutoffs.messages, rows })
  const ofTable = () => each?.() ?? pause
  const goesOn = (isDone: boolean) => isDone || each !== undefined
  if (!goesOn(await sweepTelemetry(ofTable()))) return deleted
  if (!goesOn(await sweepPositions(ofTable()))) return deleted
  const own = store.packs ? thrice(ofTable()) : ofTable()
  if (await clear('messages', deleteMessages, own)) await own()
  return deleted
}

/** For slices of six statements where the others have two, and each counts. */
function thrice(pause: Pause): Pause {
  return async () => (await pause()) && (await pause()) && (await pause())
}
