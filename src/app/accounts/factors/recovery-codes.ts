import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { recoveryCodes } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { MAX_RECOVERY_CODE } from '../../../shared/limits.ts'
import { DIGITS, LETTERS, randomText, sha256Hex } from '../../base/crypto.ts'
import { randomToken } from '../sessions/session-token.ts'
import { factorChanged } from './changes.ts'
import type { Proof } from './proof.ts'

const HOW_MANY = 10
/**
 * 16 of 32 characters: 80 bits, so that the hashes in the database reveal nothing. Look-alike characters are left out.
 */
const LENGTH = 16
const CHARACTERS = `${LETTERS}${DIGITS}`.replace(/[ilou]/g, '')

/** Typed by hand: case, spaces and hyphens do not matter. */
export const recoveryCodeSchema = z.string().min(1).max(MAX_RECOVERY_CODE)

function newCodes(): string[] {
  return Array.from({ length: HOW_MANY }, () => {
    const code = randomText(LENGTH, CHARACTERS)
    return code.replace(/(.{4})(?=.)/g, '$1-')
  })
}

function hashOf(userId: number, code: string): string {
  return sha256Hex(`${userId}:${code.toLowerCase().replace(/[^a-z0-9]/g, '')}`)
}

function insertCodes({ store }: Ctx, userId: number, codes: readonly string[], condition: SQL | undefined): Statement {
  const hashes = JSON.stringify(codes.map((code) => hashOf(userId, code)))
  return insertSelect(
    store.db,
    recoveryCodes,
    { userId, codeHash: sql`hashes.value` },
    sql`from json_each(${hashes}) as hashes where ${condition}`,
  )
}

/**
 * Codes for a user who has just added a second factor and has no codes left, in the atomic step where `isAdded` is
 * true. `read` returns them afterwards; null if codes were left.
 */
export function codesForFirstFactor(
  ctx: SignedInCtx,
  userId: number,
  isAdded: SQL,
): { readonly statements: Statement[]; read(): Promise<string[] | null> } {
  const { db } = ctx.store
  const codes = newCodes()
  const left = and(eq(recoveryCodes.userId, userId), isNull(recoveryCodes.usedBy))
  const hasNone = sql`not exists (select 1 from ${recoveryCodes} where ${left})`
  const isFirst = sql`${isAdded} and ${hasNone}`
  return {
    statements: [
      ...factorChanged(ctx, 'recovery_codes_created', { codes: HOW_MANY }, isFirst),
      insertCodes(ctx, userId, codes, isFirst),
    ],
    read: async () => {
      const first = and(eq(recoveryCodes.userId, userId), eq(recoveryCodes.codeHash, hashOf(userId, codes[0] ?? '')))
      const stored = await db.select({ id: recoveryCodes.id }).from(recoveryCodes).where(first).get()
      return stored === undefined ? null : codes
    },
  }
}

/** Ten new codes that replace all earlier ones, if `hasFactor`, a condition, is true. Throws `no_second_factor`. */
export async function renewCodes(ctx: SignedInCtx, hasFactor: SQL): Promise<string[]> {
  const { id } = ctx.viewer.user
  const codes = newCodes()
  const { db } = ctx.store
  await ctx.store.atomic([
    db.delete(recoveryCodes).where(and(eq(recoveryCodes.userId, id), hasFactor)),
    insertCodes(ctx, id, codes, hasFactor),
    ...factorChanged(ctx, 'recovery_codes_created', { codes: HOW_MANY }),
  ])
  const kept = and(eq(recoveryCodes.userId, id), eq(recoveryCodes.codeHash, hashOf(id, codes[0] ?? '')))
  const stored = await db.select({ id: recoveryCodes.id }).from(recoveryCodes).where(kept).get()
  if (stored === undefined) throw new AppError('no_second_factor')
  return codes
}

/** The proof of an unused code of the user; null if the text is not such a code. */
export async function proveByRecovery(ctx: Ctx, userId: number, code: string): Promise<Proof | null> {
  const good = and(
    eq(recoveryCodes.userId, userId),
    eq(recoveryCodes.codeHash, hashOf(userId, code)),
    isNull(recoveryCodes.usedBy),
  )
  const row = await ctx.store.db.select({ id: recoveryCodes.id }).from(recoveryCodes).where(good).get()
  if (row === undefined) return null
  const use = randomToken()
  return {
    factor: 'recovery',
    claim: (unchanged) => ctx.store.db.update(recoveryCodes).set({ usedBy: use }).where(and(good, unchanged)),
    isClaimed: sql`exists (select 1 from ${recoveryCodes} where ${recoveryCodes.id} = ${row.id} and ${recoveryCodes.usedBy} = ${use})`,
  }
}
