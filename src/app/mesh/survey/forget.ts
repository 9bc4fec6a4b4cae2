import { sql } from 'drizzle-orm'
import { coverage, heardLinks, routeLinks } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { inSlices, type Pause } from '../../base/pacing/slices.ts'
import type { Share } from '../../base/pacing/slice-share.ts'

const SLICE_ROWS = 500

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  places: db
    .delete(coverage)
    .where(sql`id in (select id from coverage where last_at < ${value('before')} limit ${value('limit')})`)
    .returning({ id: coverage.id })
    .prepare(),
  ahead: db
    .update(coverage)
    .set({ lastAt: sql`${value('now')}` })
    .where(sql`id in (select id from coverage where last_at > ${value('future')} limit ${value('limit')})`)
    .returning({ id: coverage.id })
    .prepare(),
  heard: db
    .delete(heardLinks)
    .where(
      sql`(from_node_num, to_node_num) in (select from_node_num, to_node_num from heard_links
        where t < ${value('before')} or t > ${value('future')} limit ${value('limit')})`,
    )
    .returning({ t: heardLinks.t })
    .prepare(),
  routes: db
    .delete(routeLinks)
    .where(
      sql`(from_node_num, to_node_num, channel) in (select from_node_num, to_node_num, channel from route_links
        where t < ${value('before')} or t > ${value('future')} limit ${value('limit')})`,
    )
    .returning({ t: routeLinks.t })
    .prepare(),
}))

type Times = {
  readonly places: number
  readonly links: number
  /** `at`: the time now; whatever is later than `from` was written while the clock was ahead. Null: who knows. */
  readonly future: { readonly at: number; readonly from: number } | null
}

/**
 * Forgets places where nothing was heard since `places`, and links that nothing confirmed since `links` (ms). Of what a
 * clock ahead has left, places are from now, and links are forgotten.
 */
export async function forgetSurveyed(
  store: Store,
  { places, links, future }: Times,
  pause: Pause,
  share: Share,
): Promise<number> {
  const prepared = queries(store)
  const values = { now: future?.at ?? 0, future: future?.from ?? Number.MAX_SAFE_INTEGER }
  let rows = 0
  for (const [query, before] of [
    [prepared.places, places],
    ...(future === null ? [] : [[prepared.ahead, 0] as const]),
    [prepared.heard, links],
    [prepared.routes, links],
  ] as const) {
    const done = await inSlices(async (limit) => query.all({ ...values, before, limit }), {
      full: SLICE_ROWS,
      pause,
      share,
    })
    rows += done.rows
    if (!done.goesOn) return rows
  }
  return rows
}
