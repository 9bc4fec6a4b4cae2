import { and, eq, isNull, sql, type SQL } from 'drizzle-orm'
import { insertSelect } from '../../../../db/insert-select.ts'
import { HOURLY_RUNS, type RunForm, RUNS, WHOLE_RUN } from '../../../../db/runs.ts'
import { neighbors, nodes, renumberings, telemetryDirty } from '../../../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../../../db/store.ts'
import { formatNodeId } from '../../../../meshtastic/node-id.ts'
import { fitsNodeNum } from '../../../../meshtastic/crypto/public-key.ts'
import type { Ports } from '../../../base/context.ts'
import { columnsOf, CONTENTS, type NodeColumn, sqlNameOf } from '../columns.ts'
import { moveHistory } from './move-history.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { type Share, wholeSlices } from '../../../base/pacing/slice-share.ts'

/** The old number must be silent for this long after the new one was first heard. */
const SILENCE_MS = HOUR_MS
/** A number that was known for longer than this belongs to another node. */
const NEW_MS = 7 * DAY_MS
/** The maximum number of moves in one run. */
const MAX_LOOKED_AT = 20

type Needs = Pick<Ports, 'store' | 'log' | 'now'>
/** A node that has had another number since `since`, in milliseconds. */
type Renumbering = { readonly id: number; readonly from: number; readonly to: number; readonly since: number }

const value = sql.placeholder

const nodeOf = (name: string) => sql`(select id from nodes where node_num = ${value(name)})`
/** A column of the node with this number. */
const columnOf = (name: string, column: string) =>
  sql`(select ${sql.raw(column)} from nodes where node_num = ${value(name)})`

// The old number exists, is silent, and has no history left.
const IS_MOVED = sql`exists (select 1 from nodes a where a.node_num = ${value('from')}
  and coalesce(a.last_heard, 0) < ${value('since')}
  and not exists (select 1 from telemetry x where x.node_id = a.id)
  and not exists (select 1 from telemetry_runs x where x.node_id = a.id)
  and not exists (select 1 from positions x where x.node_id = a.id))
  and exists (select 1 from nodes b where b.node_num = ${value('to')})`

/** Marks for the packed rows that cover a part of the first day. */
const packedOfFirstDay = ({ table, rowMs }: RunForm) =>
  sql`select x.node_id, ${sql.raw(String(WHOLE_RUN))}, x.t from ${sql.raw(table)} x where x.node_id = ${nodeOf('to')}
    and x.t > ${value('since')} - ${sql.raw(String(rowMs))} and x.t < ${value('since')} + ${sql.raw(String(DAY_MS))}`

/** A node's key is public, so data from a broker alone cannot move a node that our own radio heard. */
const KEY_RANK = sql.raw('2 * n.key_signed + n.key_heard')

const IS_FIRST_DAY = sql`x.t >= ${value('since')} and x.t < ${value('since')} + ${sql.raw(String(DAY_MS))}`

const IS_IN_FORCE = sql`exists (select 1 from renumberings where id = ${value('id')} and undone_at is null)`

const mergeWords = (other: string) => ({
  notes: sql`trim(notes || char(10) || coalesce(${columnOf(other, 'notes')}, ''), char(10))`,
  isFavorite: sql`max(is_favorite, coalesce(${columnOf(other, 'is_favorite')}, 0))`,
  isIgnored: sql`max(is_ignored, coalesce(${columnOf(other, 'is_ignored')}, 0))`,
  isMuted: sql`max(is_muted, coalesce(${columnOf(other, 'is_muted')}, 0))`,
  isHidden: sql`max(is_hidden, coalesce(${columnOf(other, 'is_hidden')}, 0))`,
  firstHeard: sql`min(first_heard, coalesce(${columnOf(other, 'first_heard')}, first_heard))`,
})

const unlessKnown = (columns: readonly NodeColumn[], known: string): Record<string, SQL> =>
  Object.fromEntries(
    columns.map((key) => {
      const name = sqlNameOf(key)
      return [key, sql`iif(${sql.raw(known)} is null, ${columnOf('from', name)}, ${sql.raw(name)})`]
    }),
  )

/** Fields that the new number has not reported yet are copied from the old one. */
const WHAT_IS_KNOWN: Record<string, SQL> = Object.assign(
  {},
  ...[...columnsOf('identity'), ...columnsOf('announced')].map((column) => unlessKnown([column], sqlNameOf(column))),
  unlessKnown(['nameAltered'], 'coalesce(long_name, short_name)'),
  unlessKnown(['isLicensed'], 'role'),
  unlessKnown(CONTENTS.position.columns, 'latitude'),
  unlessKnown(CONTENTS.status.columns, 'status'),
  unlessKnown(CONTENTS.metrics.columns, 'device_metrics_time'),
)

const queries = prepareOnce((db) => ({
  // Keys that several nodes share do not identify a node: they are weak, or come from a copied firmware image.
  pairs: db
    .select({
      from: sql<number>`p.a`,
      to: sql<number>`p.b`,
      since: sql<number>`p.newest`,
      publicKey: sql<string>`p.public_key`,
    })
    .from(
      sql`(select x.newest, x.public_key, min(case when n.first_heard < x.newest then n.node_num end) as a,
          max(case when n.first_heard = x.newest then n.node_num end) as b
        from (select public_key, max(first_heard) as newest from nodes where public_key is not null group by public_key
          having count(*) = 2 and max(first_heard) between ${value('newSince')} and ${value('silentSince')}) x
        cross join nodes n on n.public_key = x.public_key group by x.public_key
        having max(n.key_mismatch) = 0 and max(n.spoof_suspected) = 0 and count(distinct n.first_heard) = 2
          and max(case when n.first_heard < x.newest then n.is_local end) = 0
          and max(case when n.first_heard < x.newest then ${KEY_RANK} end)
            <= max(case when n.first_heard = x.newest then ${KEY_RANK} end)
          and max(case when n.first_heard < x.newest then coalesce(n.last_heard, n.first_heard) end) < x.newest) p`,
    )
    // A move that was undone is not tried again.
    .where(sql`not exists (select 1 from renumberings where from_node_num = p.a and to_node_num = p.b)`)
    .prepare(),
  begin: insertSelect(
    db,
    renumberings,
    { fromNodeNum: value('from'), toNodeNum: value('to'), since: value('since'), followedAt: value('now') },
    sql`where not exists (select 1 from renumberings where from_node_num = ${value('from')} and to_node_num = ${value('to')})`,
  ).prepare(),
  /** Moves whose old number still exists: some rows are not moved yet, a radio remembered it, or it is heard again. */
  open: db
    .select({
      id: renumberings.id,
      from: renumberings.fromNodeNum,
      to: renumberings.toNodeNum,
      since: renumberings.since,
      isHeardAgain: sql<number>`coalesce(${nodes.lastHeard}, 0) >= ${renumberings.since}`,
    })
    .from(renumberings)
    .innerJoin(nodes, eq(nodes.nodeNum, renumberings.fromNodeNum))
    .where(
      and(
        isNull(renumberings.undoneAt),
        sql`exists (select 1 from nodes b where b.node_num = ${renumberings.toNodeNum})`,
      ),
    )
    .orderBy(sql`5`, renumberings.id)
    .limit(MAX_LOOKED_AT)
    .prepare(),
  inherit: db
    .update(nodes)
    .set({ ...WHAT_IS_KNOWN, ...mergeWords('from') })
    .where(sql`node_num = ${value('to')} and ${IS_MOVED}`)
    .prepare(),
  inheritNumbers: db
    .update(renumberings)
    .set({ toNodeNum: sql`${value('to')}` })
    .where(and(eq(renumberings.toNodeNum, value('from')), isNull(renumberings.undoneAt), IS_MOVED))
    .prepare(),
  forgetNeighbors: db
    .delete(neighbors)
    .where(and(eq(neighbors.nodeNum, value('from')), IS_MOVED))
    .prepare(),
  forgetDirty: db
    .delete(telemetryDirty)
    .where(sql`node_id = ${nodeOf('from')} and ${IS_MOVED}`)
    .prepare(),
  forget: db
    .delete(nodes)
    .where(and(eq(nodes.nodeNum, value('from')), IS_MOVED))
    .prepare(),
  giveBack: db
    .update(nodes)
    .set(mergeWords('to'))
    .where(sql`node_num = ${value('from')} and ${IS_IN_FORCE}`)
    .prepare(),
  keepOwn: db
    .update(nodes)
    .set({ notes: '', isFavorite: false, isIgnored: false, isMuted: false, firstHeard: sql`${value('since')}` })
    .where(sql`node_num = ${value('to')} and ${IS_IN_FORCE}`)
    .prepare(),
  // The first hour and day of the new number were summed over both numbers.
  sumUpOwn: db
    .insert(telemetryDirty)
    .select(
      sql`select x.node_id, x.metric, x.t - x.t % ${sql.raw(String(HOUR_MS))} from metrics m cross join telemetry x
          on x.node_id = ${nodeOf('to')} and x.metric = m.id and ${IS_FIRST_DAY}
        union select x.node_id, x.metric, x.t from metrics m cross join telemetry_hourly x
          on x.node_id = ${nodeOf('to')} and x.metric = m.id and ${IS_FIRST_DAY}
        union ${packedOfFirstDay(RUNS)} union ${packedOfFirstDay(HOURLY_RUNS)} on conflict do nothing`,
    )
    .prepare(),
  // The numbers before the old one go back to it as well.
  giveBackNumbers: db
    .update(renumberings)
    .set({ toNodeNum: sql`${value('from')}` })
    .where(sql`to_node_num = ${value('to')} and undone_at is null and since < ${value('since')} and ${IS_IN_FORCE}`)
    .prepare(),
  settle: db
    .update(renumberings)
    .set({ undoneAt: sql`${value('now')}` })
    .where(and(eq(renumberings.id, value('id')), isNull(renumberings.undoneAt)))
    .prepare(),
  formerNums: db
    .select({ nodeNum: renumberings.fromNodeNum })
    .from(renumberings)
    .where(and(eq(renumberings.toNodeNum, value('nodeNum')), isNull(renumberings.undoneAt)))
    .orderBy(renumberings.since)
    .prepare(),
  presentNum: db
    .select({ nodeNum: renumberings.toNodeNum })
    .from(renumberings)
    .where(and(eq(renumberings.fromNodeNum, value('nodeNum')), isNull(renumberings.undoneAt)))
    .limit(1)
    .prepare(),
}))

/** The former numbers of a node, oldest first. */
export async function listFormerNums(store: Store, nodeNum: number): Promise<number[]> {
  const rows = await queries(store).formerNums.all({ nodeNum })
  return rows.map((row) => row.nodeNum)
}

/** The node's previous number; null if there is none. */
export async function readPresentNum(store: Store, nodeNum: number): Promise<number | null> {
  return (await queries(store).presentNum.get({ nodeNum }))?.nodeNum ?? null
}

/**
 * Moves the history of a node to its new number: one that announces the same public key and was first heard after the
 * old one fell silent. Excluded are numbers derived from the key, a signing node followed by one that does not sign,
 * and our own radios, which report their numbers themselves. Announcing a key does not prove it, so the history moves
 * back as soon as the old number is heard again. Awaits `pause` after each slice, which returns whether to continue;
 * the next run continues with the rest.
 * Decision: docs/decisions/renumbered-nodes.md
 */
export async function followRenumbered(
  needs: Needs,
  pause: () => Promise<boolean>,
  share: Share = wholeSlices,
): Promise<void> {
  const { store, log, now } = needs
  const prepared = queries(store)
  const found = await prepared.pairs.all({ newSince: now() - NEW_MS, silentSince: now() - SILENCE_MS })
  // A number that was derived from the key stays the same as long as the key does.
  const able = found.filter(({ publicKey, from }) => !fitsNodeNum(publicKey, from)).slice(0, MAX_LOOKED_AT)
  for (const { publicKey: _, ...pair } of able) {
    await store.atomic([bind(prepared.begin, { ...pair, now: now() })])
    const { from, to } = pair
    log.info('A node has a new number', { from: formatNodeId(from), to: formatNodeId(to) })
  }
  // Moves that have begun are completed before anything moves back.
  for (const { isHeardAgain, ...renumbering } of await prepared.open.all()) {
    const goesOn = await (isHeardAgain === 1 ? undo : follow)(needs, renumbering, pause, share)
    if (!goesOn) return
  }
}

type Step = (needs: Needs, renumbering: Renumbering, pause: () => Promise<boolean>, share: Share) => Promise<boolean>

const follow: Step = async ({ store }, renumbering, pause, share) => {
  const { inherit, inheritNumbers, forgetNeighbors, forgetDirty, forget } = queries(store)
  if (!(await moveHistory(store, { ...renumbering, before: Number.MAX_SAFE_INTEGER }, pause, share))) return false
  await store.atomic([
    bind(inherit, renumbering),
    bind(inheritNumbers, renumbering),
    bind(forgetNeighbors, renumbering),
    bind(forgetDirty, renumbering),
    bind(forget, renumbering),
  ])
  return pause()
}

/** The old number is heard again: it gets its history back, and the new one keeps only its own rows. */
const undo: Step = async ({ store, log, now }, renumbering, pause, share) => {
  const { giveBack, keepOwn, sumUpOwn, giveBackNumbers, settle } = queries(store)
  const { from, to, since } = renumbering
  if (!(await moveHistory(store, { from: to, to: from, before: since }, pause, share))) return false
  await store.atomic([
    bind(giveBack, renumbering),
    bind(keepOwn, renumbering),
    bind(sumUpOwn, renumbering),
    bind(giveBackNumbers, renumbering),
    bind(settle, { ...renumbering, now: now() }),
  ])
  const ends = { from: formatNodeId(from), to: formatNodeId(to) }
  log.warn('A node that had a new number is heard under its old one', ends)
  return pause()
}
