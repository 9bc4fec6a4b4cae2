import { sql, type SQL } from 'drizzle-orm'
import { messages, nodes, positions, telemetry } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import type { Settings } from '../settings/settings.ts'
import { mergeAfter } from '../search/text-index.ts'
import { DAY_MS } from '../../shared/time.ts'
import { partOf, type Share, wholeSlices } from '../base/slice-share.ts'
import { inSlices, type Pause } from '../base/slices.ts'

/**
 * Rows deleted in one transaction at most. A message counts as several, because its text is also removed from an index.
 */
const SLICE_ROWS = { telemetry: 1000, positions: 1000, messages: 590 } as const
/** Nodes whose telemetry one look-up searches, at most. */
const SLICE_NODES = 50

/** Data older than these times, in milliseconds, is deleted. */
export type Cutoffs = { readonly telemetry: number; readonly positions: number; readonly messages: number }

export function retentionCutoffs(settings: Settings, now: number): Cutoffs {
  return {
    telemetry: now - settings.telemetryRetentionDays * DAY_MS,
    positions: now - settings.positionRetentionDays * DAY_MS,
    messages: now - settings.messageRetentionDays * DAY_MS,
  }
}

export type Deleted = { readonly [Table in keyof Cutoffs]: number }

const placeholder = (name: string): SQL => sql`${sql.placeholder(name)}`
const slice = sql`limit ${placeholder('rows')}`

// Neither history has an index on time alone; the node (and the metric) come first in the primary key.
const queries = prepareOnce((db) => ({
  nodesAfter: db
    .select({ id: nodes.id })
    .from(nodes)
    .where(sql`${nodes.id} > ${sql.placeholder('after')}`)
    .orderBy(nodes.id)
    .limit(sql.placeholder('nodes'))
    .prepare(),
  telemetry: db
    .delete(telemetry)
    .where(
      sql`(node_id, metric, t) in (select x.node_id, x.metric, x.t
        from nodes n cross join metrics m cross join telemetry x on x.node_id = n.id and x.metric = m.id
        where n.id > ${placeholder('after')} and n.id <= ${placeholder('upTo')} and x.t < ${placeholder('cutoff')} ${slice})`,
    )
    .returning({ t: telemetry.t })
    .prepare(),
  positions: db
    .delete(positions)
    .where(
      sql`(node_id, t) in (select x.node_id, x.t from nodes n cross join positions x on x.node_id = n.id
        where x.t < ${placeholder('cutoff')} ${slice})`,
    )
    .returning({ t: positions.t })
    .prepare(),
  messages: db
    .delete(messages)
    .where(sql`id in (select id from messages where timestamp < ${placeholder('cutoff')} ${slice})`)
    .returning({ id: messages.id })
    .prepare(),
}))

/**
 * Deletes data older than the cutoffs, in slices of at most `SLICE_ROWS`; awaits `pause` after each, which returns whether
 * to continue. Returns the number of deleted rows.
 */
export async function deleteExpired(
  store: Store,
  cutoffs: Cutoffs,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<Deleted> {
  const prepared = queries(store)
  const deleted = { telemetry: 0, positions: 0, messages: 0 }
  /** False: stop. */
  const clear = async (table: keyof Deleted, deleteSlice: Parameters<typeof inSlices>[0]): Promise<boolean> => {
    const done = await inSlices(deleteSlice, { full: SLICE_ROWS[table], pause, share })
    deleted[table] += done.rows
    return done.goesOn && (await pause())
  }
  let goesOn = true
  for (let after = 0; goesOn;) {
    const upTo = (await prepared.nodesAfter.all({ after, nodes: partOf(SLICE_NODES, share()) })).at(-1)?.id
    if (upTo === undefined) break
    const range = { after, upTo, cutoff: cutoffs.telemetry }
    goesOn = await clear('telemetry', (rows) => prepared.telemetry.all({ ...range, rows }))
    after = upTo
  }
  goesOn &&= await clear('positions', (rows) => prepared.positions.all({ cutoff: cutoffs.positions, rows }))
  const deleteMessages = async (rows: number) => {
    const slice = await prepared.messages.all({ cutoff: cutoffs.messages, rows })
    await mergeAfter(store, 'messages', slice.length)
    return slice
  }
  if (goesOn) await clear('messages', deleteMessages)
  return deleted
}
