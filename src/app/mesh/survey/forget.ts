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
  heard: db
    .delete(heardLinks)
    .where(
      sql`(from_node_num, to_node_num) in (select from_node_num, to_node_num from heard_links
        where t < ${value('before')} limit ${value('limit')})`,
    )
    .returning({ t: heardLinks.t })
    .prepare(),
  routes: db
    .delete(routeLinks)
    .where(
      sql`(from_node_num, to_node_num, channel) in (select from_node_num, to_node_num, channel from route_links
        where t < ${value('before')} limit ${value('limit')})`,
    )
    .returning({ t: routeLinks.t })
    .prepare(),
}))

/** Forgets places where nothing was heard since `places`, and links that nothing confirmed since `links` (ms). */
export async function forgetSurveyed(
  store: Store,
  { places, links }: { readonly places: number; readonly links: number },
  pause: Pause,
  share: Share,
): Promise<number> {
  const prepared = queries(store)
  let rows = 0
  for (const [query, before] of [
    [prepared.places, places],
    [prepared.heard, links],
    [prepared.routes, links],
  ] as const) {
    const done = await inSlices(async (limit) => query.all({ before, limit }), { full: SLICE_ROWS, pause, share })
    rows += done.rows
    if (!done.goesOn) return rows
  }
  return rows
}
