import { languageOf } from '../../words/reader.ts'
import { and, eq } from 'drizzle-orm'
import type { Context } from 'hono'
import { users } from '../../../db/schema.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { getUser } from '../users/users.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'
import { browserDetails } from '../browser.ts'
import { findKnownBrowser } from '../sessions/known-browser.ts'
import { attemptCode, type RefusedLimit } from '../passwords/login-limiter.ts'
import { countCode, endAttempt, type FactorAttempt, findAttempt } from './attempts.ts'
import type { Proof } from './proof.ts'
import { releaseTokens } from '../tokens/hold.ts'
import { type CheckedUser, isUnchanged } from './unchanged.ts'

/** The attempt that waits for a second factor in this browser. Throws `attempt_ended`. */
export async function demandAttempt(c: Context, ctx: Ctx): Promise<FactorAttempt> {
  const attempt = await findAttempt(c, ctx)
  if (attempt === null) throw new AppError('attempt_ended')
  return attempt
}

/**
 * Completes a sign-in after a correct password with the second factor that `prove` finds, and records the outcome.
 * Returns the user to start a session for. Throws `invalid_code`, `attempt_ended`, `rate_limited`.
 */
export async function finishAttempt(
  c: Context,
  ctx: Ctx,
  factor: SecondFactor,
  prove: (attempt: FactorAttempt) => Promise<Proof | null>,
): Promise<CheckedUser> {
  const attempt = await demandAttempt(c, ctx)
  const { userId } = attempt
  const user = await getUser(ctx.store, userId).catch(() => null)
  if (user === null) throw new AppError('attempt_ended')
  const actor = { id: userId, username: user.username }
  const browser = await findKnownBrowser(c, ctx, user.username)
  const refused = { username: user.username, provider: 'local', factor }
  const recordRefusal = async (limit: RefusedLimit) => {
    const details = { ...refused, reason: 'rate_limited', limit }
    await ctx.store.atomic([audit(ctx, 'login_failed', details, { actor })], 'lazily')
  }
  const check = async () => {
    await countCode(ctx, attempt)
    return prove(attempt)
  }
  const proof = await attemptCode(ctx, { userId, browser }, check, recordRefusal)
  if (proof === null) {
    const details = { ...refused, reason: 'wrong_code' }
    await ctx.store.atomic([audit(ctx, 'login_failed', details, { actor })], 'lazily')
    throw new AppError('invalid_code')
  }
  await endAttempt(c, ctx, attempt)
  if (user.isAdmin) ctx.disk?.makeRoom()
  const signedIn = await claimSignIn(ctx, attempt, proof, { actor, isNewBrowser: browser === null })
  if (!signedIn) throw new AppError('attempt_ended')
  return { userId, epoch: attempt.epoch }
}

/**
 * Uses up a proof for a sign-in, after a password or `isAlone`; false if another request was faster, or the user has changed since the check began.
 */
export async function claimSignIn(
  ctx: Ctx,
  user: CheckedUser,
  proof: Proof,
  {
    actor,
    isNewBrowser,
    isAlone = false,
  }: {
    readonly actor: { readonly id: number; readonly username: string }
    readonly isNewBrowser: boolean
    readonly isAlone?: boolean
  },
): Promise<boolean> {
  const unchanged = isUnchanged(ctx.store, user)
  const { db } = ctx.store
  const signedInAt = ctx.now()
  await ctx.store.atomic([
    proof.claim(unchanged),
    db
      .update(users)
      .set({ lastLoginAt: signedInAt, browserLanguage: languageOf(ctx.acceptLanguage) })
      .where(and(eq(users.id, user.userId), proof.isClaimed)),
    audit(
      ctx,
      'login_success',
      {
        provider: 'local',
        factor: proof.factor,
        ...(isAlone && { alone: true }),
        ...browserDetails(ctx),
        ...(isNewBrowser && { newBrowser: true }),
      },
      { actor, onlyIfChanged: true },
    ),
    ...releaseTokens(ctx, actor, signedInAt),
  ])
  const won = await db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, user.userId), proof.isClaimed))
    .get()
  return won !== undefined
}
