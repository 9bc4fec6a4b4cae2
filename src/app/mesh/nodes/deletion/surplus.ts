import { type Placeholder, sql } from 'drizzle-orm'
import { neighbors, nodes, renumberings } from '../../../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../../../db/store.ts'
import { partOf, type Share, wholeSlices } from '../../../base/pacing/slice-share.ts'
import { capTo, tally } from '../../../base/fair-cap.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import { countDays, dayOf, type Evidence, weigh } from './evidence.ts'

/**
 * The maximum number of nodes, because anybody can make up numbers, also on the air. Nodes that somebody has marked do
 * not count.
 */
export const MAX_NODES = 20_000
/**
 * Nodes heard on fewer days are newcomers. They have at least this part of the room that nodes heard by our radios
 * leave.
 */
const KNOWN_DAYS = 3
const NEWCOMERS_SHARE = 1 / 10
/** The maximum number of nodes compared in one look-up. */
const LOOK_UP_NODES = 5000
/** Nodes deleted in one transaction at most. */
const SLICE_NODES = 200

const value: (name: string) => Placeholder = sql.placeholder
const among = (column: string) => sql`${sql.raw(column)} in (select value from json_each(${value('keys')}))`
const isNobodys = sql`not is_local and not is_favorite and not is_ignored and not is_muted and not is_hidden and notes = ''`

const queries = prepareOnce((db) => ({
  count: db
    .select({ n: sql<number>`count(*)` })
    .from(nodes)
    .prepare(),
  candidates: db
    .select({
      id: nodes.id,
      nodeNum: nodes.nodeNum,
      sourceId: nodes.sourceId,
      daysHeard: nodes.daysHeard,
      lastHeardDay: nodes.lastHeardDay,
      heardByRadio: nodes.heardByRadio,
      firstHeard: nodes.firstHeard,
      lastHeard: nodes.lastHeard,
      isNobodys: sql<number>`${isNobodys}`,
    })
    .from(nodes)
    .where(sql`id > ${value('after')}`)
    .orderBy(nodes.id)
    .limit(value('nodes'))
    .prepare(),
  neighbors: db.delete(neighbors).where(among('node_num')).prepare(),
  renumberings: db
    .delete(renumberings)
    .where(sql`${among('from_node_num')} or ${among('to_node_num')}`)
    .prepare(),
  nodes: db
    .delete(nodes)
    .where(sql`${among('id')} and ${isNobodys}`)
    .prepare(),
}))

type Surplus = { readonly id: number; readonly nodeNum: number }
type Candidate = Surplus & Evidence & { readonly sourceId: number | null }

/**
 * Deletes the nodes beyond `most`, in slices; awaits `pause` after each, which returns whether to continue. Nodes that
 * somebody has marked stay, and so do our own. `sweepForgotten` deletes their history. Returns the number of deleted
 * nodes.
 */
export async function forgetSurplusNodes(
  store: Store,
  pause: () => Promise<boolean>,
  { now, share = wholeSlices, most = MAX_NODES }: { now: number; share?: Share; most?: number },
): Promise<number> {
  if (((await queries(store).count.get())?.n ?? 0) <= most) return 0
  const candidates: Candidate[] = []
  for (let after: number | undefined = 0; after !== undefined;) {
    const rows = await queries(store).candidates.all({ after, nodes: partOf(LOOK_UP_NODES, share()) })
    for (const row of rows) if (row.isNobodys === 1) candidates.push(row)
    after = rows.at(-1)?.id
    if (!(await pause())) return 0
  }
  const surplus = chooseSurplus(candidates, most, now)
  let forgotten = 0
  for (let slice; (slice = surplus.splice(0, partOf(SLICE_NODES, share()))).length > 0;) {
    await forgetNodes(store, slice)
    forgotten += slice.length
    if (!(await pause())) break
  }
  return forgotten
}

/** Chooses `count` of the nodes to delete. */
type Choose = (nodes: readonly Candidate[], count: number) => readonly Candidate[]

/**
 * Nodes that one of our radios hears are kept before all others, because at a broker anybody can collect days by
 * waiting. Of the rest, those heard on few days compete among themselves for a part of the room; of the others, those
 * heard on the fewest days are deleted first. Sources share the room, so that none displaces the nodes of another.
 */
function chooseSurplus(candidates: readonly Candidate[], most: number, now: number): Surplus[] {
  const today = dayOf(now)
  const lightestFirst = byRank((node) => weigh(node, today), oldestOf)
  const heard = candidates.filter(({ heardByRadio }) => heardByRadio)
  const reported = candidates.filter(({ heardByRadio }) => !heardByRadio)
  const room = Math.max(0, most - heard.length)
  const newcomers = reported.filter((node) => countDays(node) < KNOWN_DAYS)
  const known = reported.filter((node) => countDays(node) >= KNOWN_DAYS)
  const kept = Math.max(Math.floor(room * NEWCOMERS_SHARE), room - known.length)
  const keptNewcomers = Math.min(newcomers.length, kept)
  // Half of their room is for those heard latest. Otherwise made-up nodes of two days keep all newer ones out.
  const firm = Math.floor(keptNewcomers / 2)
  const contested = bySource(lightestFirst)(newcomers, newcomers.length - firm)
  return [
    ...byRank((node) => weigh(node, today), bySource(oldestOf))(heard, heard.length - most),
    ...bySource(oldestOf)(contested, newcomers.length - keptNewcomers),
    ...bySource(lightestFirst)(known, known.length - (room - keptNewcomers)),
  ]
}

/** Chooses those of the lowest rank first. */
const byRank =
  (rankOf: (node: Candidate) => number, choose: Choose): Choose =>
  (nodes, count) => {
    const chosen: Candidate[] = []
    if (count <= 0) return chosen
    for (const [, equals] of [...Map.groupBy(nodes, rankOf)].toSorted(([a], [b]) => a - b)) {
      for (const node of choose(equals, Math.min(equals.length, count - chosen.length))) chosen.push(node)
      if (chosen.length >= count) break
    }
    return chosen
  }

/** Chooses those of the sources with the most nodes first. */
const bySource =
  (choose: Choose): Choose =>
  (nodes, count) => {
    const chosen: Candidate[] = []
    if (count <= 0) return chosen
    const all = [...Map.groupBy(nodes, ({ sourceId }) => sourceId).values()]
    const cap = capTo(tally(all.map(({ length }) => length)), nodes.length - count)
    for (const ofSource of all) {
      const surplus = Math.min(ofSource.length - cap, count - chosen.length)
      for (const node of choose(ofSource, surplus)) chosen.push(node)
    }
    return chosen
  }

/** Without sorting, because one source may have all the nodes. */
function oldestOf(all: readonly Candidate[], count: number): Candidate[] {
  if (count <= 0) return []
  const byHour = Map.groupBy(all, ({ lastHeard, firstHeard }) => Math.floor((lastHeard ?? firstHeard) / HOUR_MS))
  const oldest: Candidate[] = []
  for (const [, heardThen] of [...byHour].toSorted(([a], [b]) => a - b)) {
    for (const node of heardThen) if (oldest.length < count) oldest.push(node)
    if (oldest.length >= count) break
  }
  return oldest
}

async function forgetNodes(store: Store, slice: readonly Surplus[]): Promise<void> {
  const { neighbors: links, renumberings: numbers, nodes: rows } = queries(store)
  const keys = JSON.stringify(slice.map(({ nodeNum }) => nodeNum))
  const ids = JSON.stringify(slice.map(({ id }) => id))
  await store.atomic([bind(links, { keys }), bind(numbers, { keys }), bind(rows, { keys: ids })])
}
