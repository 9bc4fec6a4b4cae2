import type { StoredRow } from './entry.ts'
import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog } from '../../db/schema.ts'
import type { Store } from '../../db/store.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { type Chain, hashRow, readChain, rowsAfter } from './chain.ts'
import { timeField } from '../http/fields.ts'

/** Entries that are checked in one turn of the event loop: a few milliseconds, even on a Raspberry Pi. */
const SLICE = 200

/**
 * Possible damage: an entry differs from its seal, is missing, has lost its seal, or older entries are missing without
 * a record that they were trimmed.
 */
const BREAKS = ['changed', 'missing', 'unsealed', 'trim_unrecorded'] as const

export const chainPartSchema = z
  .object({
    entries: z.int().describe('Number of checked entries'),
    until: z
      .object({ id: z.int(), timestamp: timeField, hash: z.string() })
      .nullable()
      .describe('The last unchanged entry; all entries before it are unchanged too'),
    unsealed: z.int().describe('Entries after it that are not sealed yet'),
    broken: z
      .object({ id: z.int(), reason: z.enum(BREAKS) })
      .nullable()
      .describe('The first entry that is changed or missing'),
    trimmed: z
      .object({ id: z.int(), hash: z.string() })
      .nullable()
      .describe('The last entry that was trimmed, and its hash'),
    newestId: z.int().nullable(),
    next: z.int().nullable().describe('Where the next part begins; null at the end'),
  })
  .meta({ id: 'AuditVerification', description: 'Whether a part of the audit log is unchanged' })
export type ChainPart = z.infer<typeof chainPartSchema>

type Until = NonNullable<ChainPart['until']>
type Broken = NonNullable<ChainPart['broken']>

/** The position of the check. `previous` is null once entries are not sealed yet. */
type Walk = { expected: number; previous: string | null; entries: number; unsealed: number; until: Until | null }

/**
 * Checks at most `limit` entries after the id `after`, where an earlier part ended; 0: from the first entry that was
 * not trimmed. Other requests run in between.
 */
export async function verifyChain(
  store: Store,
  { after, limit }: { after: number; limit: number },
): Promise<ChainPart> {
  const chain = await readChain(store)
  const walk = await beginWalk(store, chain, after)
  const found = 'reason' in walk ? { broken: walk, isEnd: true } : await check(store, chain, walk, limit)
  // Missing entries may have been trimmed meanwhile.
  if (found.broken !== null && (await readChain(store)).trimmedId > chain.trimmedId) {
    return verifyChain(store, { after, limit })
  }
  const { entries, unsealed, until, expected } = 'reason' in walk ? NOTHING : walk
  const newest = await store.db
    .select({ id: sql<number | null>`max(${auditLog.id})` })
    .from(auditLog)
    .get()
  return {
    entries,
    until,
    unsealed,
    broken: found.broken,
    trimmed: chain.trimmedId === 0 ? null : { id: chain.trimmedId, hash: chain.trimmedHash },
    newestId: newest?.id ?? null,
    next: found.isEnd ? null : expected - 1,
  }
}

const NOTHING = { entries: 0, unsealed: 0, until: null, expected: 0 }

async function beginWalk(store: Store, chain: Chain, after: number): Promise<Walk | Broken> {
  const { trimmedId, trimmedHash } = chain
  const walk = { entries: 0, unsealed: 0, until: null }
  if (after <= trimmedId) {
    if (!(await isTrimRecorded(store, chain))) return { id: trimmedId, reason: 'trim_unrecorded' }
    return { ...walk, expected: trimmedId + 1, previous: trimmedHash }
  }
  const [row] = await rowsAfter(store, after - 1, 1)
  if (row?.id !== after) return { id: after, reason: 'missing' }
  return { ...walk, expected: after + 1, previous: row.hash }
}

async function isTrimRecorded(store: Store, { trimmedId, trimmedHash }: Chain): Promise<boolean> {
  if (trimmedId === 0) return true
  const tells = and(
    eq(auditLog.action, 'audit_trimmed'),
    sql`${auditLog.id} > ${trimmedId}`,
    sql`${auditLog.details} ->> 'lastId' = ${trimmedId}`,
    sql`${auditLog.details} ->> 'lastHash' = ${trimmedHash}`,
  )
  return (await store.db.select({ id: auditLog.id }).from(auditLog).where(tells).get()) !== undefined
}

async function check(
  store: Store,
  chain: Chain,
  walk: Walk,
  limit: number,
): Promise<{ broken: Broken | null; isEnd: boolean }> {
  for (;;) {
    const asked = Math.min(SLICE, limit - walk.entries)
    const rows = await rowsAfter(store, walk.expected - 1, asked)
    for (const row of rows) {
      const broken = checkRow(chain, walk, row)
      if (broken !== null) return { broken, isEnd: true }
    }
    if (rows.length < asked) {
      const isCut = walk.expected <= chain.sealedId
      return { broken: isCut ? { id: walk.expected, reason: 'missing' } : null, isEnd: true }
    }
    if (walk.entries >= limit) return { broken: null, isEnd: false }
    await nextTurn()
  }
}

function checkRow(chain: Chain, walk: Walk, row: StoredRow): Broken | null {
  const { id, timestamp, hash } = row
  if (id !== walk.expected) return { id: walk.expected, reason: 'missing' }
  walk.expected++
  walk.entries++
  if (walk.previous === null || hash === null) {
    if (id <= chain.sealedId) return { id, reason: 'unsealed' }
    walk.previous = null
    walk.unsealed++
    return null
  }
  if (hash !== hashRow(walk.previous, row)) return { id, reason: 'changed' }
  if (id === chain.sealedId && hash !== chain.sealedHash) return { id, reason: 'changed' }
  walk.previous = hash
  walk.until = { id, timestamp, hash }
  return null
}
