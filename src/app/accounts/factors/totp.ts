import { and, eq, gt, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Context } from 'hono'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { totpFactors, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { authenticatorUri, fromHex, isSameText, oneTimeCode, toBase32, toHex } from '../../base/crypto.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'
import { beginAdding } from './adding.ts'
import { factorChanged } from './changes.ts'
import type { Proof } from './proof.ts'
import { codesForFirstFactor } from './recovery-codes.ts'

const ISSUER = 'Mesh Monitoring Service'
/** As long as the hash: RFC 4226, section 4. */
const SEED_BYTES = 20
const PERIOD_S = 30
/** The number of steps by which the phone's clock may differ from ours, either way. */
const DRIFT_STEPS = 1
const ENROLMENT_MS = 10 * MINUTE_MS
const SEED_LABEL = 'totp-seed'
const ENROLMENT_LABEL = 'totp-enrolment'

export const totpCodeSchema = z.string().regex(/^\d{6}$/, 'six digits')

const enrolmentSchema = z.strictObject({
  userId: z.int(),
  epoch: z.int(),
  seed: z.string(),
  expiresAt: z.int(),
})

/** Data for a new authenticator app. Nothing is stored until the user enters one of its codes. */
export async function beginTotp(ctx: SignedInCtx): Promise<{ secret: string; uri: string; enrolment: string }> {
  const { user } = ctx.viewer
  const seed = crypto.getRandomValues(new Uint8Array(SEED_BYTES))
  const content: z.infer<typeof enrolmentSchema> = {
    userId: user.id,
    epoch: sessionEpoch(ctx),
    seed: toHex(seed),
    expiresAt: ctx.now() + ENROLMENT_MS,
  }
  const uri = authenticatorUri(ISSUER, user.username, seed, PERIOD_S)
  return {
    secret: toBase32(seed),
    uri,
    enrolment: await seal(ctx.config.SESSION_SECRET, ENROLMENT_LABEL, JSON.stringify(content)),
  }
}

function sessionEpoch({ viewer }: SignedInCtx): number {
  if (viewer.credential.kind !== 'session') throw new AppError('forbidden')
  return viewer.credential.session.epoch
}

/**
 * Stores the app from `beginTotp` in place of an earlier one, if the code is correct. The first second factor comes
 * with recovery codes, shown once; null if there are some already. Throws `wrong_code`, `enrolment_ended`.
 */
export async function confirmTotp(
  c: Context,
  ctx: SignedInCtx,
  input: { readonly enrolment: string; readonly code: string },
): Promise<string[] | null> {
  const opened = await unseal(ctx.config.SESSION_SECRET, ENROLMENT_LABEL, input.enrolment)
  const content = opened === null ? null : enrolmentSchema.parse(JSON.parse(opened))
  const { user } = ctx.viewer
  const now = ctx.now()
  const isOurs = content?.userId === user.id && content.epoch === sessionEpoch(ctx)
  if (content === null || !isOurs || content.expiresAt <= now || content.expiresAt > now + ENROLMENT_MS) {
    throw new AppError('enrolment_ended')
  }
  const step = await findStep(fromHex(content.seed), input.code, now)
  if (step === null) throw new AppError('wrong_code')
  const sealed = await seal(ctx.config.SESSION_SECRET, seedLabel(user.id), content.seed)
  // An enrolment works only once, like its code.
  const { count } = await ctx.sessions.hit(`factor:enrolment:${hashToken(input.enrolment)}`, ENROLMENT_MS, now)
  if (count > 1) throw new AppError('enrolment_ended')
  const use = randomToken()
  const { db } = ctx.store
  const adding = await beginAdding(ctx)
  const isNew = sql`exists (select 1 from ${totpFactors} where ${eq(totpFactors.lastUse, use)})`
  const codes = codesForFirstFactor(ctx, user.id, isNew)
  await ctx.store.atomic([
    insertSelect(
      db,
      totpFactors,
      { userId: user.id, seed: sealed, lastStep: step, lastUse: use, createdAt: now },
      sql`from ${users} where ${and(eq(users.id, user.id), adding.unchanged)}`,
    ).onConflictDoUpdate({
      target: totpFactors.userId,
      set: { seed: sealed, lastStep: step, lastUse: use, createdAt: now, lastUsedAt: null },
    }),
    ...factorChanged(ctx, 'second_factor_added', { factor: 'totp' }),
    ...codes.statements,
    ...adding.statements(isNew),
  ])
  const after = await db
    .select({ use: totpFactors.lastUse })
    .from(totpFactors)
    .where(eq(totpFactors.userId, user.id))
    .get()
  const shown = await codes.read()
  // Another app may have replaced this one at the same moment. The codes that came with this one are still valid and
  // shown to nobody else.
  if (after?.use !== use && shown === null) throw new AppError('enrolment_ended')
  await adding.finish(c)
  return shown
}

/** A code of the user's app; null if it is wrong, there is no app, or its seed is sealed under another secret. */
export async function proveByTotp(ctx: Ctx, userId: number, code: string): Promise<Proof | null> {
  const row = await ctx.store.db
    .select({ seed: totpFactors.seed, lastStep: totpFactors.lastStep })
    .from(totpFactors)
    .where(eq(totpFactors.userId, userId))
    .get()
  const seed = row === undefined ? null : await openSeed(ctx, userId, row.seed)
  const now = ctx.now()
  const step = seed === null ? null : await findStep(seed, code, now)
  // A later step is only possible if the clock was ahead then and has been corrected since.
  const latest = stepAt(now) + DRIFT_STEPS
  if (row === undefined || step === null || (row.lastStep >= step && row.lastStep <= latest)) return null
  const use = randomToken()
  const isFresh = or(lt(totpFactors.lastStep, step), gt(totpFactors.lastStep, latest))
  return {
    factor: 'totp',
    claim: (unchanged: SQL): Statement =>
      ctx.store.db
        .update(totpFactors)
        .set({ lastStep: step, lastUse: use, lastUsedAt: now })
        .where(and(eq(totpFactors.userId, userId), isFresh, unchanged)),
    isClaimed: sql`exists (select 1 from ${totpFactors} where ${totpFactors.userId} = ${userId} and ${totpFactors.lastUse} = ${use})`,
  }
}

/** Whether a stored seed can be decrypted with the current secrets. */
export async function isSeedReadable(ctx: Pick<Ctx, 'config'>, userId: number, sealed: string): Promise<boolean> {
  return (await openSeed(ctx, userId, sealed)) !== null
}

async function openSeed({ config }: Pick<Ctx, 'config'>, userId: number, sealed: string): Promise<Uint8Array | null> {
  const opened = await unseal(config.SESSION_SECRET, seedLabel(userId), sealed)
  return opened === null ? null : fromHex(opened)
}

/** A seed that is moved to another user's row cannot be decrypted. */
export function seedLabel(userId: number): string {
  return `${SEED_LABEL}:${userId}`
}

function stepAt(now: number): number {
  return Math.floor(now / 1000 / PERIOD_S)
}

/** The time step of this code; null if it belongs to none of the accepted steps. RFC 6238, 5.2 and 6. */
async function findStep(seed: Uint8Array, code: string, now: number): Promise<number | null> {
  const today = stepAt(now)
  let found: number | null = null
  // Checks all steps, whichever matches, so that the time taken reveals nothing.
  for (let step = today - DRIFT_STEPS; step <= today + DRIFT_STEPS; step++) {
    const expected = await oneTimeCode(seed, step)
    if (isSameText(expected, code)) found = step
  }
  return found
}
