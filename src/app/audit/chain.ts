import type { AuditRow, StoredRow } from './entry.ts'
import { eachTurn, inSlices, type Pause } from '../base/pacing/slices.ts'
import { and, eq, gt, isNull, sql } from 'drizzle-orm'
import { insertSelect } from '../../db/insert-select.ts'
import { auditChain, auditLog } from '../../db/schema.ts'
import { type Db, prepareOnce, rawRows, rememberUnchanged, type Statement, type Store } from '../../db/store.ts'
import { sha256Hex } from '../base/crypto.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { mergeAfter } from '../search/merging.ts'

// Each entry is sealed by a hash over the previous hash and its own fields, so nobody can change, remove or insert an
// entry without changing all later hashes. SQLite has no SHA-256, so entries are sealed shortly after they are written.

/** The hash before the first entry. */
export const GENESIS = '0'.repeat(64)

/** Entries that are hashed in one turn of the event loop: a few milliseconds, even on a Raspberry Pi. */
const SLICE = 100
const RECENT_SLICES = 40

/** The sealed fields of an entry. Its details are JSON text, or the value that the text contains. */
export type Sealed = Omit<AuditRow, 'details' | 'hash' | 'previousHash'> & { readonly details: unknown }

/** Hexadecimal SHA-256 of the previous hash, a line feed, and the JSON array of the fields. */
export function hashEntry(previous: string, entry: Sealed): string {
  const { id, timestamp, userId, username, action, resource, details, ip, requestId } = entry
  const fields = [id, timestamp, userId, username, action, resource, details, ip, requestId]
  return sha256Hex(`${previous}\n${JSON.stringify(fields)}`)
}

/** As `hashEntry`, for an entry as it is stored. */
export function hashRow(previous: string, row: StoredRow): string {
  return hashEntry(previous, { ...row, details: parseStored(row.details) })
}

// Details from a restored backup may be invalid JSON; they are sealed as they are.
function parseStored(details: string): unknown {
  try {
    return JSON.parse(details)
  } catch {
    return details
  }
}

export type Chain = {
  readonly trimmedId: number
  readonly trimmedHash: string
  readonly sealedId: number
  readonly sealedHash: string
}

const UNSEALED: Chain = { trimmedId: 0, trimmedHash: GENESIS, sealedId: 0, sealedHash: GENESIS }

const queries = prepareOnce((db: Db) => ({
  chain: db.select().from(auditChain).prepare(),
  unsealed: db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(sql`${auditLog.id} > coalesce((select ${auditChain.sealedId} from ${auditChain}), 0)`)
    .limit(1)
    .prepare(),
  after: db
    .select()
    .from(auditLog)
    .where(gt(auditLog.id, sql.placeholder('after')))
    .orderBy(auditLog.id)
    .limit(sql.placeholder('rows'))
    .prepare(),
  hashes: db
    .select({ id: auditLog.id, hash: auditLog.hash })
    .from(auditLog)
    .where(sql`${auditLog.id} in (select value from json_each(${sql.placeholder('ids')}))`)
    .prepare(),
  trim: db
    .delete(auditLog)
    .where(
      sql`id in (select id from audit_log where id <= (select trimmed_id from audit_chain) order by id limit ${SLICE})`,
    )
    .returning({ id: auditLog.id })
    .prepare(),
}))

/** How far the log is sealed and trimmed. */
export async function readChain(store: Store): Promise<Chain> {
  return (await queries(store).chain.get()) ?? UNSEALED
}

/** At most `rows` entries after an id, the oldest first. */
export async function rowsAfter(store: Store, after: number, rows: number): Promise<StoredRow[]> {
  return queries(store).after.all({ after, rows })
}

/**
 * Entries, each with the previous hash, from which its own is computed; null: the previous entry is not sealed yet, or
 * is missing. `next` was read with them and may be the previous one.
 */
export async function withPreviousHashes(
  store: Store,
  rows: readonly StoredRow[],
  next?: StoredRow,
): Promise<AuditRow[]> {
  if (rows.length === 0) return []
  const { trimmedId, trimmedHash } = await readChain(store)
  const known = new Map<number, string | null>(rows.map(({ id, hash }) => [id, hash]))
  if (next !== undefined) known.set(next.id, next.hash)
  known.set(trimmedId, trimmedHash)
  const unknown = rows.map(({ id }) => id - 1).filter((id) => !known.has(id))
  if (unknown.length > 0) {
    const before = await queries(store).hashes.all({ ids: JSON.stringify(unknown) })
    for (const { id, hash } of before) known.set(id, hash)
  }
  return rows.map((row) => ({ ...row, previousHash: known.get(row.id - 1) ?? null }))
}

/**
 * Seals the unsealed entries, oldest first, and returns how many; awaits `pause` after each slice, which returns
 * whether to continue. Several instances may do so at once: all calculate the same hashes. Does not wait for the disk:
 * entries that lose their seal in a power cut are sealed again.
 */
export async function sealAudit(store: Store, pause: Pause = eachTurn): Promise<number> {
  return (await inSlices(() => sealSlice(store), { full: SLICE, pause })).rows
}

const isSealed = rememberUnchanged(1, async (store) => (await rawRows(queries(store).unsealed)).length === 0)

/** Seals recent entries. That is enough, unless the log of an earlier version is still being sealed. */
export async function sealRecent(store: Store): Promise<void> {
  if (await isSealed(store, null)) return
  let left = RECENT_SLICES
  await sealAudit(store, async () => {
    await nextTurn()
    return --left > 0
  })
}

/** Returns the entries that it sealed. */
async function sealSlice(store: Store): Promise<readonly StoredRow[]> {
  const { sealedId, sealedHash } = await readChain(store)
  const rows = await rowsAfter(store, sealedId, SLICE)
  const last = rows.at(-1)
  if (last === undefined) return rows
  const seals: [number, string][] = []
  let previous = sealedHash
  for (const row of rows) {
    // An entry carried over by a restore has its hash already; verification shows whether the hash is right.
    previous = row.hash ?? hashRow(previous, row)
    if (row.hash === null) seals.push([row.id, previous])
  }
  await store.atomic(sealing(store.db, { seals, before: sealedId, last: last.id, hash: previous }), 'lazily')
  return rows
}

type Seal = {
  readonly seals: readonly [number, string][]
  readonly before: number
  readonly last: number
  readonly hash: string
}

const FIRST = { id: 1, trimmedId: 0, trimmedHash: GENESIS, sealedId: 0, sealedHash: GENESIS }

// Changes nothing if another instance was faster.
function sealing(db: Db, { seals, before, last, hash }: Seal): [Statement, ...Statement[]] {
  const isOurTurn = sql`(select ${auditChain.sealedId} from ${auditChain}) = ${before}`
  const isFirst = sql`not exists (select 1 from ${auditChain})`
  return [
    insertSelect(db, auditChain, FIRST, sql`where ${isFirst}`),
    db
      .update(auditLog)
      .set({ hash: sql`seal.value ->> 1` })
      .from(sql`json_each(${JSON.stringify(seals)}) seal`)
      .where(and(sql`${auditLog.id} = seal.value ->> 0`, isNull(auditLog.hash), isOurTurn)),
    db.update(auditChain).set({ sealedId: last, sealedHash: hash }).where(eq(auditChain.sealedId, before)),
  ]
}

/** Deletes trimmed entries that still exist; returns how many. */
export async function deleteTrimmed(store: Store, pause: Pause = eachTurn): Promise<number> {
  const deleteSlice = async () => {
    const slice = await queries(store).trim.all()
    await mergeAfter(store, slice.length)
    return slice
  }
  return (await inSlices(deleteSlice, { full: SLICE, pause })).rows
}
