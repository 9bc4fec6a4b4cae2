import { and, eq, getTableColumns, getTableName, isNull, lt, sql, type SQL } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import {
  nodes,
  positions,
  renumberings,
  telemetry,
  telemetryDaily,
  telemetryDirty,
  telemetryHourly,
} from '../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import type { Ports } from '../context.ts'
import { DAY_MS, HOUR_MS } from './roll-up.ts'

/** The old number must be silent for so long after the new one was first heard. */
const SILENCE_MS = HOUR_MS
/** A number that was first heard before this is another node: what it has is too much to be moved at once. */
const NEW_MS = 7 * DAY_MS
/** In one run. */
const MOST = 20
/** No node has it. */
const NO_NODE_NUM = -1

type NodeRow = typeof nodes.$inferSelect
type Renumbering = typeof renumberings.$inferSelect
type Needs = Pick<Ports, 'store' | 'log' | 'now'>

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  // Keys that more nodes have are copies of a firmware image, or weak ones: they say nothing about who a node is.
  pairs: db
    .select({
      from: sql<number>`min(case when n.first_heard < x.newest then n.node_num end)`,
      to: sql<number>`max(case when n.first_heard = x.newest then n.node_num end)`,
    })
    .from(
      sql`(select public_key, max(first_heard) as newest from nodes where public_key is not null
        group by public_key having count(*) = 2 and max(first_heard) between ${value('newSince')} and ${value('silentSince')})
        x cross join nodes n on n.public_key = x.public_key`,
    )
    .groupBy(sql`x.public_key`)
    .having(
      sql`max(n.key_mismatch) = 0 and max(n.spoof_suspected) = 0 and count(distinct n.first_heard) = 2
        and max(case when n.first_heard < x.newest then coalesce(n.last_heard, n.first_heard) end) < x.newest`,
    )
    .limit(MOST)
    .prepare(),
  wasUndone: db
    .select({ id: renumberings.id })
    .from(renumberings)
    .where(and(eq(renumberings.fromNodeNum, value('from')), eq(renumberings.toNodeNum, value('to'))))
    .prepare(),
  heardAgain: db
    .select({ renumbering: renumberings, node: nodes })
    .from(renumberings)
    .innerJoin(nodes, eq(nodes.nodeNum, renumberings.fromNodeNum))
    .where(isNull(renumberings.undoneAt))
    .orderBy(renumberings.id)
    .limit(MOST)
    .prepare(),
  byNum: db
    .select()
    .from(nodes)
    .where(eq(nodes.nodeNum, value('nodeNum')))
    .prepare(),
  formerNums: db
    .select({ nodeNum: renumberings.fromNodeNum })
    .from(renumberings)
    .where(and(eq(renumberings.toNodeNum, value('nodeNum')), isNull(renumberings.undoneAt)))
    .orderBy(renumberings.since)
    .prepare(),
}))

/** Under which numbers a node was known before, the oldest first. */
export async function listFormerNums(store: Store, nodeNum: number): Promise<number[]> {
  const rows = await queries(store).formerNums.all({ nodeNum })
  return rows.map((row) => row.nodeNum)
}

/**
 * Lets the history of a node follow it to a new number: one that announces the same public key and was first heard after
 * the old one fell silent. A key is not proven by announcing it, so it goes back as soon as the old number is heard again.
 */
export async function followRenumbered(needs: Needs): Promise<void> {
  const { store, log, now } = needs
  const prepared = queries(store)
  for (const { renumbering, node } of await prepared.heardAgain.all()) await undo(needs, renumbering, node)
  const pairs = await prepared.pairs.all({ newSince: now() - NEW_MS, silentSince: now() - SILENCE_MS })
  for (const { from, to } of pairs) {
    if ((await prepared.wasUndone.get({ from, to })) !== undefined) continue
    const old = await prepared.byNum.get({ nodeNum: from })
    const fresh = await prepared.byNum.get({ nodeNum: to })
    if (old === undefined || fresh === undefined) continue
    await store.atomic(follow(store, old, fresh, now()))
    log.info('A node goes on under another number', { from: formatNodeId(from), to: formatNodeId(to) })
  }
}

function follow({ db }: Store, old: NodeRow, fresh: NodeRow, now: number): [Statement, ...Statement[]] {
  const from = sql`${fresh.id}`
  const to = sql`${old.id}`
  const kept = {
    notes: [old.notes, fresh.notes].filter((notes) => notes !== '').join('\n'),
    isFavorite: old.isFavorite || fresh.isFavorite,
    isIgnored: old.isIgnored || fresh.isIgnored,
  }
  const known = Object.fromEntries(Object.entries(stateOf(fresh)).filter(([, told]) => told !== null))
  return [
    db.update(renumberings).set({ toNodeNum: fresh.nodeNum }).where(isNow(old.nodeNum)),
    ...moveHistory(db, from, to, 0),
    db.delete(nodes).where(eq(nodes.id, fresh.id)),
    db
      .update(nodes)
      .set({ ...known, ...kept, nodeNum: fresh.nodeNum })
      .where(eq(nodes.id, old.id)),
    db.insert(renumberings).values({
      fromNodeNum: old.nodeNum,
      toNodeNum: fresh.nodeNum,
      since: fresh.firstHeard,
      followedAt: now,
    }),
  ]
}

/** The old number is heard again: it gets its history back, and the other one keeps what is its own. */
async function undo({ store, log, now }: Needs, renumbering: Renumbering, again: NodeRow): Promise<void> {
  const { id, fromNodeNum, toNodeNum, since } = renumbering
  const { db } = store
  const settle = db.update(renumberings).set({ undoneAt: now() }).where(eq(renumberings.id, id))
  const moved = await queries(store).byNum.get({ nodeNum: toNodeNum })
  if (moved === undefined) return store.atomic([settle])
  const { id: _, ...other } = moved
  const own = sql`${moved.id}`
  const others = sql`(select id from nodes where node_num = ${toNodeNum})`
  await store.atomic([
    settle,
    db.update(nodes).set({ nodeNum: NO_NODE_NUM }).where(eq(nodes.id, moved.id)),
    db.insert(nodes).values({ ...other, ...NOTHING_SAID, firstHeard: since }),
    ...moveHistory(db, own, others, since),
    ...moveHistory(db, sql`${again.id}`, own, 0),
    db.delete(nodes).where(eq(nodes.id, again.id)),
    db
      .update(nodes)
      .set({ ...stateOf(again), nodeNum: fromNodeNum })
      .where(eq(nodes.id, moved.id)),
    // Numbers before this one are this node's as well.
    db
      .update(renumberings)
      .set({ toNodeNum: fromNodeNum })
      .where(and(isNow(toNodeNum), lt(renumberings.since, since))),
  ])
  const ends = { from: formatNodeId(fromNodeNum), to: formatNodeId(toNodeNum) }
  log.warn('A node that went on under another number is heard under its old one', ends)
}

const NOTHING_SAID = { notes: '', isFavorite: false, isIgnored: false } as const

function isNow(nodeNum: number): SQL | undefined {
  return and(eq(renumberings.toNodeNum, nodeNum), isNull(renumberings.undoneAt))
}

/** What is known of a node by what was heard, without what people say of it and when it was first heard. */
function stateOf(row: NodeRow) {
  const { id: _id, nodeNum: _nodeNum, firstHeard: _, notes: _n, isFavorite: _f, isIgnored: _i, ...state } = row
  return state
}

/** Statements that move what a node had from `since` on to another one; hours that both have are rolled up again. */
function moveHistory(db: Store['db'], from: SQL, to: SQL, since: number): Statement[] {
  const own = sql`node_id = ${from} and t >= ${since}`
  const hour = sql.raw(String(HOUR_MS))
  return [
    db
      .insert(telemetryDirty)
      .select(sql`select distinct ${to}, metric, t - t % ${hour} from telemetry where ${own} on conflict do nothing`),
    ...[positions, telemetry, telemetryHourly, telemetryDaily, telemetryDirty].flatMap((table) => [
      db.insert(table).select(sql`${selectFor(table, to)} where ${own} on conflict do nothing`),
      db.delete(table).where(own),
    ]),
  ]
}

/** The rows of a table with another node in them. */
function selectFor(table: SQLiteTable, nodeId: SQL): SQL {
  const columns = Object.values(getTableColumns(table)).map(({ name }) => (name === 'node_id' ? nodeId : sql.raw(name)))
  return sql`select ${sql.join(columns, sql`, `)} from ${sql.raw(getTableName(table))}`
}
