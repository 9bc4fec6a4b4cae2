import { type Placeholder, sql, type SQL } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import {
  messages,
  neighbors,
  packets,
  positions,
  provenPackets,
  receptions,
  rowCounts,
  telemetry,
  telemetryDaily,
  telemetryHourly,
  traceroutes,
  waypoints,
} from '../../db/schema.ts'
import { literals } from '../../db/json-rows.ts'
import { countedAs, RUNS_OF } from '../../db/runs.ts'
import { type Db, prepareOnce, type Store } from '../../db/store.ts'
import { isNameOf } from '../../shared/names.ts'
import { DAYS_HEARD } from '../mesh/nodes/deletion/evidence.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'
import { isRecounted, needsCount, recount } from '../retention/recount.ts'
import { BOUND_TABLES, type BoundTable } from '../retention/bounds.ts'
import { trimPages } from './packet-pages.ts'
import { capTo, tally } from '../base/fair-cap.ts'
import { preparePacked, trimPacked } from './packed-quotas.ts'
import { type Part, prepareThinning, thinOut } from './thinning.ts'
import { partOf, type Share, wholeSlices } from '../base/pacing/slice-share.ts'

/** Owners read in one look-up at most. */
const LOOK_UP_OWNERS = 10_000
/** Owners measured by one statement of a store that holds no event loop. Its answer is small, however many they are. */
const MEASURED_OWNERS = 200_000
/** Rows of owners that are sorted and deleted at once; an owner with more is handled separately. */
const SLICE_ROWS = 2000
/** Messages walked through in one slice. */
const WALKED_ROWS = 5000

// A node heard on at least 32 days has a share of its own. Nodes heard on fewer days share five buckets, from 1, 2, 4,
// 8 and 16 days; senders that are not nodes share the lowest one. So made-up numbers get a single share, however many
// there are.
const OWN_BUCKET = 5
const TIER = OWN_BUCKET + 1
// Nodes that our radios hear have buckets and room of their own, because at a broker anybody can collect days by
// waiting.
const BUCKET = sql.raw(`case when n.id is null then 0
  when n.is_local or n.is_favorite or n.is_ignored or n.notes <> '' then ${TIER + OWN_BUCKET}
  ${[32, 16, 8, 4, 2].map((days, index) => `when ${DAYS_HEARD} >= ${days} then ${OWN_BUCKET - index} + ${TIER} * n.heard_by_radio`).join(' ')}
  else ${TIER} * n.heard_by_radio end`)
/** The minimum part of a full table for nodes heard by our radios. */
const HEARD_SHARE = 3 / 4

type Owner = { readonly owner: number; readonly n: number; readonly bucket: number }
/** Owners in a bucket with the same number of rows; `last` is the owner with the largest number. */
type Size = { readonly n: number; readonly bucket: number; readonly howMany: number; readonly last: number }

const value: (name: string) => Placeholder = sql.placeholder
const { raw } = sql

type Rows = {
  readonly rows: SQLiteTable
  /** The key of a row, in SQL. */
  readonly key: string
  /** The rows as `x`, with their owner. */
  readonly from?: string
  readonly owner: string
  /** Rows that come first in this order are kept longest. */
  readonly order: string
  /** The condition of the rows that are limited; absent: all. */
  readonly only?: string
  /**
   * How to handle an owner with very many rows: find them by the ids of messages, thin them out over time, or delete this
   * many at once, where no index has their order and each statement reads and sorts all of them, if no event loop waits.
   */
  readonly large?: { readonly messageId: string } | { readonly thinnedFrom: number } | { readonly atOnce: number }
}

const OF_NODE = { owner: 'x.node_id', order: 'x.t' }
const OF_CHART = { ...OF_NODE, key: 'node_id, metric, t' }
const OF_SENDER = { key: 'id', owner: 'x.from_node_num', order: 'x.id' }

/** An owner above its share loses its latest rows; of its packets, its oldest. */
const TABLES: Record<BoundTable, Rows> = {
  packets: { ...OF_SENDER, rows: packets, order: 'x.id desc' },
  messages: { ...OF_SENDER, rows: messages, large: { messageId: 'x.id' } },
  receptions: {
    rows: receptions,
    key: 'message_id, source_id, gateway',
    from: 'messages m cross join receptions x on x.message_id = m.id',
    owner: 'm.from_node_num',
    // Packets heard by our own radios are kept longest.
    order: 'x.gateway <> 0, x.message_id, x.t',
    large: { messageId: 'm.id' },
  },
  positions: { ...OF_NODE, rows: positions, key: 'node_id, t', large: { thinnedFrom: 1000 } },
  telemetry: { ...OF_CHART, rows: telemetry, large: { thinnedFrom: 1000 } },
  telemetry_hourly: { ...OF_CHART, rows: telemetryHourly, large: { thinnedFrom: 6 * HOUR_MS } },
  telemetry_daily: { ...OF_CHART, rows: telemetryDaily, large: { thinnedFrom: 7 * DAY_MS } },
  traceroutes: { ...OF_SENDER, rows: traceroutes, owner: 'x.to_node_num', only: 'x.requested_by is null' },
  proven_packets: {
    rows: provenPackets,
    key: 'from_node_num, packet_id',
    owner: OF_SENDER.owner,
    // Anybody can make up what is not proven.
    order: 'x.proven desc, x.t desc',
    large: { atOnce: 50_000 },
  },
  neighbors: { rows: neighbors, key: 'node_num, neighbor_num', owner: 'x.node_num', order: 'x.t' },
  waypoints: { ...OF_SENDER, rows: waypoints },
}
function prepareTable(db: Db, table: BoundTable) {
  const { rows, key, from = `${table} x`, owner, order, only = 'true', large } = TABLES[table]
  const nodeKey = owner === OF_NODE.owner ? 'id' : 'node_num'
  const keys = key.replaceAll(/\w+/g, (column) => `x.${column}`)
  const remove = (slice: SQL) =>
    db
      .delete(rows)
      .where(sql`(${raw(key)}) in (${slice})`)
      .returning({ n: sql<number>`1` })
      .prepare()
  const names = countedAs(table)
  const ofTable = sql`table_name in (${literals(names)})`
  const isSingle = names.length === 1
  const counts = isSingle ? sql`owner, n from row_counts` : sql`owner, sum(n) as n from row_counts`
  const counted = (only: SQL) => sql`(select ${counts} where ${ofTable} and owner > ${value('after')}
    ${only} order by owner limit ${value('owners')}) c left join nodes n on n.${raw(nodeKey)} = c.owner`
  const [all, above] = isSingle
    ? [sql``, sql`and n > ${value('above')}`]
    : [sql`group by owner`, sql`group by owner having sum(n) > ${value('above')}`]
  return {
    owners: db
      .select({ owner: sql<number>`c.owner`, n: sql<number>`c.n`, bucket: sql<number>`${BUCKET}` })
      .from(counted(above))
      .orderBy(sql`c.owner`)
      .prepare(),
    sizes: db
      .select({
        bucket: sql<number>`${BUCKET} as b`,
        n: sql<number>`c.n`,
        howMany: sql<number>`count(*)`,
        last: sql<number>`max(c.owner)`,
      })
      .from(counted(all))
      .groupBy(sql`b, c.n`)
      .prepare(),
    clean: db
      .delete(rowCounts)
      .where(sql`${ofTable} and owner > ${value('after')} and owner <= ${value('upTo')} and n <= 0`)
      .prepare(),
    beyond: remove(
      sql`select ${raw(key)} from (select ${raw(keys)}, row_number() over (partition by ${raw(owner)}
        order by ${raw(order)}) as place from json_each(${value('keys')}) k cross join ${raw(from)}
        where ${raw(owner)} = k.value and ${raw(only)}) where place > ${value('keep')} limit ${value('rows')}`,
    ),
    any: remove(
      sql`select ${raw(keys)} from ${raw(from)} where ${raw(owner)} = ${value('owner')} and ${raw(only)}
        order by ${raw(reversed(order))} limit ${value('rows')}`,
    ),
    // The plus keeps SQLite from using the index of senders, so that the ids come first.
    walked:
      large !== undefined && 'messageId' in large
        ? remove(
            sql`select ${raw(keys)} from ${raw(from)} where ${raw(large.messageId)} > ${value('low')}
              and ${raw(large.messageId)} <= ${value('high')} and +${raw(owner)} = ${value('owner')} and ${raw(only)}
              order by ${raw(large.messageId)} desc limit ${value('rows')}`,
          )
        : null,
    thinning: large !== undefined && 'thinnedFrom' in large ? prepareThinning(db, rows, large.thinnedFrom) : null,
    atOnce: large !== undefined && 'atOnce' in large ? large.atOnce : SLICE_ROWS,
    packed: isNameOf(RUNS_OF, table) ? preparePacked(db, table) : null,
  }
}

/** The order of deletion: rows to be kept longest come last. */
function reversed(order: string): string {
  const parts = order.split(', ').map((part) => (part.endsWith(' desc') ? part.replace(/ desc$/, '') : `${part} desc`))
  return parts.join(', ')
}

const queries = prepareOnce((db) => {
  const newest = db
    .select({ id: sql<number | null>`max(id)` })
    .from(messages)
    .prepare()
  return { newest, tables: new Map(BOUND_TABLES.map((table) => [table, prepareTable(db, table)])) }
})
type Prepared = ReturnType<typeof prepareTable>

type Run = {
  readonly store: Store
  readonly pause: () => Promise<boolean>
  readonly share: Share
  readonly now: number
}

/**
 * Deletes rows beyond the limits `most` of the tables, regardless of their age, in slices; awaits `pause` after each, which returns whether to
 * continue. Owners with the most rows lose them first. Returns the number of deleted rows of each table that was above
 * its limit.
 */
export async function enforceRowQuotas(
  store: Store,
  pause: () => Promise<boolean>,
  { now, share = wholeSlices, most }: { now: number; share?: Share; most: Partial<Record<BoundTable, number>> },
): Promise<Partial<Record<BoundTable, number>>> {
  const deleted: Partial<Record<BoundTable, number>> = {}
  let goesOn = true
  const watched = async () => (goesOn = goesOn && (await pause()))
  const run = { store, pause: watched, share, now }
  for (const [table, prepared] of queries(store).tables) {
    const bound = most[table]
    const trimmed = table === 'packets' && goesOn && bound !== undefined ? await trimPages(store, bound, watched) : 0
    if (trimmed > 0) deleted[table] = trimmed
    const find = async () => (goesOn && bound !== undefined ? await measure(run, prepared, bound) : null)
    let shares = await find()
    const isCounted = shares !== null && isRecounted(store, table)
    const counted = isCounted ? await recount(store, table, { pause: watched, share }) : 'before'
    if (counted !== 'before') shares = counted === 'now' ? await find() : null
    const surplus = shares === null ? 0 : await trim(run, prepared, shares)
    // Where no trigger counts, the counts stay as they are only until something was deleted.
    if (isCounted && (surplus > 0 || goesOn)) await needsCount(store, table)
    if (shares !== null) deleted[table] = trimmed + surplus
  }
  return deleted
}

/** How many rows of each owner a bucket may keep, and by how many rows it exceeds its limit. */
type Bucket = { readonly keep: number; excess: number }

/** Null if there are not too many rows, or if `pause` ended the run. */
async function measure({ store, pause, share }: Run, prepared: Prepared, bound: number): Promise<Bucket[] | null> {
  const counts = Array.from({ length: 2 * TIER }, () => new Map<number, number>())
  const most = store.packs ? MEASURED_OWNERS : LOOK_UP_OWNERS
  for (let after: number | undefined = -1; after !== undefined;) {
    // Counted in SQL: in a flood there are many owners, but few different numbers of rows.
    const sizes: Size[] = await prepared.sizes.all({ after, owners: partOf(most, share()) })
    for (const { n, bucket, howMany } of sizes) {
      const tallied = counts[bucket]
      if (n > 0) tallied?.set(n, (tallied.get(n) ?? 0) + howMany)
    }
    const last: number = sizes.reduce((most, size) => Math.max(most, size.last), after)
    if (sizes.some(({ n }) => n <= 0)) await prepared.clean.run({ after, upTo: last })
    if (sizes.reduce((sum, { howMany }) => sum + howMany, 0) > 1 && !(await pause())) return null
    after = sizes.length > 0 ? last : undefined
  }
  const [reported, heard] = [counts.slice(0, TIER), counts.slice(TIER)]
  const [ofReported, ofHeard] = [countRows(reported), countRows(heard)]
  if (ofReported + ofHeard <= bound) return null
  const room = Math.min(ofHeard, Math.max(Math.ceil(bound * HEARD_SHARE), bound - ofReported))
  return [...shareOut(reported, bound - room), ...shareOut(heard, room)]
}

function countRows(counts: readonly ReadonlyMap<number, number>[]): number {
  return counts.flatMap((tallied) => [...tallied]).reduce((sum, [n, howMany]) => sum + n * howMany, 0)
}

/** The buckets of one tier, together at most `bound` rows. */
function shareOut(counts: readonly ReadonlyMap<number, number>[], bound: number): Bucket[] {
  const totals = counts.map((tallied) => countRows([tallied]))
  const sum = countRows(counts)
  if (sum <= bound) return counts.map(() => ({ keep: Number.MAX_SAFE_INTEGER - 1, excess: 0 }))
  const [own = new Map<number, number>()] = counts.slice(OWN_BUCKET)
  const all = tally(totals.slice(0, OWN_BUCKET))
  for (const [n, howMany] of own) all.set(n, (all.get(n) ?? 0) + howMany)
  const cap = capTo(all, bound)
  return counts.map((tallied, index) => {
    const total = totals[index] ?? 0
    if (index < OWN_BUCKET) return { keep: capTo(tallied, Math.min(total, cap)), excess: Math.max(0, total - cap) }
    const excess = [...tallied].reduce((sum, [n, howMany]) => sum + Math.max(0, n - cap) * howMany, 0)
    return { keep: cap, excess: Math.min(excess, sum - bound) }
  })
}

/**
 * Limits are whole numbers, so the remaining excess is deleted row by row, owners with a single row last. A row more or
 * less is nothing to an owner that keeps a full slice, whose rows would all be read once more for it.
 */
async function trim(run: Run, prepared: Prepared, buckets: readonly Bucket[]): Promise<number> {
  const raised = buckets.map(({ keep, excess }) => ({ keep: keep < SLICE_ROWS ? keep + 1 : keep, excess }))
  const deleted = await trimTo(run, prepared, raised)
  const rest = buckets.map(({ keep }, index) => ({ keep, excess: raised[index]?.excess ?? 0 }))
  return deleted + (rest.some(({ excess }) => excess > 0) ? await trimTo(run, prepared, rest) : 0)
}

/** Each run starts at another number, so that no owner is always first. */
async function trimTo(run: Run, prepared: Prepared, buckets: readonly Bucket[]): Promise<number> {
  const start = (Math.floor(run.now / 1000) * 2_654_435_761) % 2 ** 32
  let deleted = 0
  for (const [first, last] of [
    [start, Number.MAX_SAFE_INTEGER],
    [-1, start],
  ] as const) {
    for (let after: number | undefined = first; after !== undefined;) {
      const above = leastOver(run.store, buckets)
      const owners: Owner[] = await prepared.owners.all({ after, above, owners: partOf(LOOK_UP_OWNERS, run.share()) })
      if (!(await run.pause())) return deleted
      const met = owners.filter(({ owner }) => owner <= last)
      const part = await trimOwners(run, prepared, buckets, met)
      deleted += part
      if (!(await run.pause())) return deleted
      after =
        met.length < owners.length || buckets.every(({ excess }) => excess <= 0) ? undefined : owners.at(-1)?.owner
    }
  }
  return deleted
}

/**
 * Owners with no more rows than this are passed over while looking for others. Where the look-up holds the event loop
 * none are, so that its slice is as long as it says.
 */
function leastOver({ packs }: Store, buckets: readonly Bucket[]): number {
  const over = buckets.filter(({ excess }) => excess > 0)
  return packs ? over.reduce((least, { keep }) => Math.min(least, keep), Number.MAX_SAFE_INTEGER) : -1
}

async function trimOwners(
  run: Run,
  prepared: Prepared,
  buckets: readonly Bucket[],
  owners: readonly Owner[],
): Promise<number> {
  let deleted = 0
  for (const [index, bucket] of buckets.entries()) {
    const full = owners.filter((owner) => owner.bucket === index && owner.n > bucket.keep)
    const { removed: packed, over } = await trimPacked(run, prepared.packed, bucket, full)
    deleted += packed
    for (let slice; bucket.excess > 0 && (slice = takeSlice(over, partOf(SLICE_ROWS, run.share()))).length > 0;) {
      const [only] = slice
      const isLarge = slice.length === 1 && only !== undefined && only.n > SLICE_ROWS
      const rows = Math.min(bucket.excess, SLICE_ROWS)
      const removed = isLarge
        ? await trimLarge(run, prepared, { owner: only.owner, excess: Math.min(only.n - bucket.keep, bucket.excess) })
        : (
            await prepared.beyond.all({
              keys: JSON.stringify(slice.map(({ owner }) => owner)),
              keep: bucket.keep,
              rows,
            })
          ).length
      deleted += removed
      bucket.excess -= removed
      if (!(await run.pause())) return deleted
    }
  }
  return deleted
}

/** As many owners as together have this number of rows, but at least one. */
function takeSlice(over: Owner[], rows: number): Owner[] {
  let sum = 0
  const end = over.findIndex(({ n }, index) => (sum += n) > rows && index > 0)
  return over.splice(0, end === -1 ? over.length : end)
}

async function trimLarge(run: Run, prepared: Prepared, { owner, excess }: Part): Promise<number> {
  const { walked, thinning, any, atOnce } = prepared
  if (walked !== null) return walk(run, walked, { owner, excess })
  const thinned = thinning === null ? 0 : await thinOut(run, thinning, { owner, excess })
  let left = excess - thinned
  const slice = run.store.packs ? atOnce : SLICE_ROWS
  for (let isLeft = left > 0; isLeft;) {
    const rows = Math.min(left, partOf(slice, run.share()))
    const { length } = await any.all({ owner, rows })
    left -= length
    isLeft = length === rows && left > 0 && (await run.pause())
  }
  return excess - left
}

/** Searched from the latest message on, because the excess of an owner is recent. */
async function walk(run: Run, walked: NonNullable<Prepared['walked']>, { owner, excess }: Part): Promise<number> {
  let left = excess
  let high = (await queries(run.store).newest.get())?.id ?? 0
  while (high > 0 && left > 0) {
    const low = high - partOf(WALKED_ROWS, run.share())
    const rows = Math.min(left, partOf(SLICE_ROWS, run.share()))
    const { length } = await walked.all({ low, high, owner, rows })
    left -= length
    if (length < rows) high = low
    if (!(await run.pause())) break
  }
  return excess - left
}
