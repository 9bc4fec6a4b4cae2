import { and, getTableColumns, gt, gte, isNotNull, lte, sql } from 'drizzle-orm'
import { routeLinks, survey, traceroutes } from '../../../db/schema.ts'
import { field, prepareJsonInsert } from '../../../db/json-rows.ts'
import { bind, prepareOnce } from '../../../db/store.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import type { Ports } from '../../base/context.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { partOf, type Share, wholeSlices } from '../../base/pacing/slice-share.ts'
import { linksOfWay } from '../findings/links.ts'

/** The latest traceroutes that are looked at, and how many in one slice. */
const MAX_ROUTES = 2000
const SLICE_ROUTES = 200
/** Rows that are kept, the latest ones: anybody on the mesh can make up any number of hops. */
const MAX_ROWS = 20_000

const value = sql.placeholder
const answered = sql<number>`coalesce(${traceroutes.answeredAt}, ${traceroutes.timestamp})`

const queries = prepareOnce((db) => ({
  latest: db
    .select({ t: sql<number | null>`max(t)` })
    .from(routeLinks)
    .where(lte(routeLinks.t, value('now')))
    .prepare(),
  ids: db
    .select({ id: sql<number | null>`max(id)` })
    .from(traceroutes)
    .prepare(),
  slice: db
    .select({
      id: traceroutes.id,
      from: traceroutes.fromNodeNum,
      to: traceroutes.toNodeNum,
      route: traceroutes.route,
      t: answered.as('answered'),
      channel: traceroutes.channel,
    })
    .from(traceroutes)
    .where(
      and(
        isNotNull(traceroutes.route),
        gt(traceroutes.id, value('after')),
        sql`${answered} between ${value('since')} and ${value('now')}`,
      ),
    )
    .orderBy(traceroutes.id)
    .limit(value('limit'))
    .prepare(),
  store: prepareJsonInsert(db, routeLinks, {
    values: Object.fromEntries(Object.keys(getTableColumns(routeLinks)).map((name) => [name, field(name)])),
    onConflict: sql`on conflict do update set start_num = excluded.start_num, end_num = excluded.end_num,
      snr = excluded.snr, t = excluded.t where excluded.t >= route_links.t`,
  }),
  ahead: db
    .delete(routeLinks)
    .where(
      sql`t > ${value('now')} and (from_node_num, to_node_num, channel) in (select value ->> 'fromNodeNum',
        value ->> 'toNodeNum', value ->> 'channel' from json_each(${value('links')}))`,
    )
    .prepare(),
  changed: db
    .update(survey)
    .set({ version: sql`${survey.version} + 1` })
    .prepare(),
  stored: db
    .select()
    .from(routeLinks)
    .where(gte(routeLinks.t, value('since')))
    .prepare(),
  trim: db
    .delete(routeLinks)
    .where(sql`t <= (select t from route_links order by t desc limit 1 offset ${sql.raw(String(MAX_ROWS))})`)
    .prepare(),
}))

/**
 * Keeps the hops of the latest traceroutes. Those of the last hour are looked at again, because an answer may arrive late.
 * What a clock ahead has left counts for nothing. Awaits `pause` after each slice, which returns whether to continue.
 */
export async function surveyRoutes(
  { store, now: clock }: Pick<Ports, 'store' | 'now'>,
  pause: Pause,
  share: Share = wholeSlices,
): Promise<void> {
  const prepared = queries(store)
  const now = clock()
  const since = ((await prepared.latest.get({ now }))?.t ?? 0) - HOUR_MS
  const known = (await prepared.stored.all({ since })).filter(({ t }) => t <= now)
  const stored = new Map(known.map((row) => [keyOf(row), row.t]))
  let after = ((await prepared.ids.get())?.id ?? 0) - MAX_ROUTES
  for (;;) {
    const rows = await prepared.slice.all({ after, since, now, limit: partOf(SLICE_ROUTES, share()) })
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.id
    const links = rows.flatMap(({ from: startNum, to: endNum, channel, ...way }) =>
      linksOfWay({ ...way, from: startNum, to: endNum, channel })
        .filter(({ from, to }) => from !== to)
        .map(({ from, to, snr, t }) => {
          const ends = { fromNodeNum: from, toNodeNum: to, startNum, endNum }
          return { ...ends, channel: channel ?? UNKNOWN_CHANNEL, snr, t }
        })
        .filter((link) => (stored.get(keyOf(link)) ?? -1) < link.t),
    )
    if (links.length > 0)
      await store.atomic(
        [
          bind(prepared.ahead, { now, links: JSON.stringify(links) }),
          prepared.store(links),
          bind(prepared.trim, {}),
          bind(prepared.changed, {}),
        ],
        'lazily',
      )
    if (!(await pause())) return
  }
}

type Key = Pick<typeof routeLinks.$inferSelect, 'fromNodeNum' | 'toNodeNum' | 'channel'>
const keyOf = ({ fromNodeNum, toNodeNum, channel }: Key) => `${fromNodeNum} ${toNodeNum} ${channel}`
