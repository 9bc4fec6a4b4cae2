import { sql } from 'drizzle-orm'
import { recentPages } from '../../../../db/packet-log.ts'
import { type Db, prepareOnce, type Store } from '../../../../db/store.ts'
import { ownedBy } from '../../../base/owned.ts'
import { WINDOW_MS, WINDOW_SIZE } from './packet-window.ts'

// Nearly every delivery looks for its packets among the latest 50,000. Their keys are remembered: D1 counts each
// element of a JSON array that a statement goes through as a row that it read.

type Page = {
  readonly firstId: number
  readonly lastId: number
  readonly tFirst: number
  readonly tLast: number
  /** Null: it was deleted, or there is none yet. */
  readonly firstKey: string | null
  /** The places in the page of each key. */
  readonly places: ReadonlyMap<string, readonly number[]>
}

/** A packet that arrived; `at` in milliseconds. */
type Arrived = { readonly from: number; readonly id: number; readonly at: number }

/** What this process knows of the pages of a log, by first id, oldest first; null: nothing yet. */
const remembered = ownedBy((_db: Db): { pages: ReadonlyMap<number, Page> | null } => ({ pages: null }))

const queries = prepareOnce((db) => ({
  // Columns of tables have no alias in Drizzle's SQL.
  pages: db
    .select({
      firstId: sql<number>`g.first_id`,
      lastId: sql<number>`g.last_id`,
      tFirst: sql<number>`g.t_first`,
      tLast: sql<number>`g.t_last`,
      keys: sql<string>`g.keys`,
    })
    .from(sql`packet_pages g`)
    .where(recentPages(WINDOW_SIZE, sql.placeholder('from')))
    .orderBy(sql`g.first_id`)
    .prepare(),
}))

/** Reads the keys of pages that are not remembered yet: of the newest known page, and of those after it. */
export async function readRecentPages(store: Store): Promise<void> {
  const state = remembered(store.db)
  const before = state.pages
  // A log of rows gets no pages while it is in use.
  if (!store.packs && before?.size === 0) return
  const newest = [...(before?.values() ?? [])].at(-1) ?? null
  const pagesFrom = async (from: number) => (await queries(store).pages.all({ from })).map(pageOf)
  const after = await pagesFrom(newest?.firstId ?? 0)
  const isContinued = newest === null || goesOn(newest, after[0])
  const read = isContinued ? after : await pagesFrom(0)
  // Other deliveries of this process may have read on meanwhile. A log that does not go on is another one: emptied, or
  // restored.
  const known = isContinued || state.pages !== before ? state.pages : null
  const pages = new Map(known)
  for (const page of read) if ((pages.get(page.firstId)?.lastId ?? 0) < page.lastId) pages.set(page.firstId, page)
  const last = Math.max(0, ...Array.from(pages.values(), ({ lastId }) => lastId))
  state.pages = new Map(
    [...pages].filter(([firstId]) => firstId > last - WINDOW_SIZE).toSorted(([one], [other]) => one - other),
  )
}

function goesOn(newest: Page, found: Page | undefined): boolean {
  if (found?.firstId !== newest.firstId || found.lastId < newest.lastId) return false
  return newest.firstKey === null || found.firstKey === null || newest.firstKey === found.firstKey
}

function pageOf({ keys, ...row }: Omit<Page, 'firstKey' | 'places'> & { readonly keys: string }): Page {
  const list: unknown = JSON.parse(keys)
  const places = new Map<string, readonly number[]>()
  if (!Array.isArray(list)) throw new Error('the keys of a page are no list')
  for (const [place, key] of list.entries())
    if (typeof key === 'string') places.set(key, [...(places.get(key) ?? []), place])
  return { ...row, firstKey: typeof list[0] === 'string' ? list[0] : null, places }
}

/**
 * The ids that packets with the senders, packet ids and about the times of `arrived` have in remembered pages; and the
 * first and last id of the newest of these, so that a statement can look for what was written since. `hasPages`: false if
 * there surely are none.
 */
export function findInRecentPages(
  store: Store,
  arrived: readonly Arrived[],
): { readonly ids: readonly number[]; readonly newest: number; readonly upTo: number; readonly hasPages: boolean } {
  const { pages } = remembered(store.db)
  if (pages === null) return { ids: [], newest: 0, upTo: 0, hasPages: true }
  // What has no packet id is only the same at the same moment.
  const asked = arrived.map(({ from, id, at }) => ({ key: keyOf(from, id), at, window: id === 0 ? 0 : WINDOW_MS }))
  const ids: number[] = []
  for (const [firstId, { tFirst, tLast, places }] of pages) {
    for (const { key, at, window } of asked) {
      if (tLast < at - window || tFirst > at + window) continue
      for (const place of places.get(key) ?? []) ids.push(firstId + place)
    }
  }
  const [newest = 0, page] = [...pages].at(-1) ?? []
  return { ids: [...new Set(ids)], newest, upTo: page?.lastId ?? 0, hasPages: store.packs || pages.size > 0 }
}

/** As `keyOf` of packet-log.ts makes it. */
const keyOf = (from: number, id: number) => hex(from) + hex(id)
const hex = (n: number) => n.toString(16).padStart(8, '0')
