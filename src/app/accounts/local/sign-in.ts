import { languageOf } from '../../words/reader.ts'
import { and, eq, not, sql } from 'drizzle-orm'
import type * as z from 'zod'
import { apiTokens, users } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { nextEpoch } from '../users/users.ts'
import { browserDetails } from '../browser.ts'
import { listSecondFactors } from '../factors/factors.ts'
import { hasFactor, hasSecondFactor } from '../users/has-factor.ts'
import type { Party } from '../factors/relying-party.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'
import { releaseTokens } from '../tokens/hold.ts'
import { type signedInSchema, signInBy } from '../access/viewer.ts'
import { attemptLogin, attemptPassword, type KnownBrowser, type RefusedLimit } from '../passwords/login-limiter.ts'
import { hashNewPassword, isSamePassword, renewHash, verifyPassword } from '../passwords/passwords.ts'

export type SignIn =
  | {
      readonly kind: 'signed-in'
      readonly userId: number
      readonly epoch: number
      readonly answer: z.infer<typeof signedInSchema>
    }
  /** The password was correct; one of these factors must follow. */
  | { readonly kind: 'half'; readonly userId: number; readonly epoch: number; readonly factors: SecondFactor[] }
  | { readonly kind: 'refused' }

const queries = prepareOnce((db) => ({
  /** The active local user with this name. */
  localByName: db
    .select({
      id: users.id,
      username: users.username,
      hash: users.passwordHash,
      epoch: users.sessionEpoch,
      isAdmin: users.isAdmin,
      hasFactor: hasSecondFactor,
    })
    .from(users)
    .where(
      and(
        sql`lower(${users.username}) = lower(${sql.placeholder('username')})`,
        eq(users.isActive, true),
        eq(users.authProvider, 'local'),
      ),
    )
    .prepare(),
}))

/**
 * Checks a local user's password and records the outcome. Unknown, inactive and OpenID Connect users take the same
 * time and get the same answer as a wrong password. `party` is where passkeys would be used. Throws `rate_limited`.
 */
export async function signIn(
  ctx: Ctx,
  { username, password }: { readonly username: string; readonly password: string },
  { browser, party }: { readonly browser: KnownBrowser | null; readonly party: Party | null },
): Promise<SignIn> {
  const turn = browser === null ? 'anonymous' : 'known'
  const reading = { select: queries(ctx.store).localByName, values: { username } }
  const user = await attemptLogin(
    ctx,
    { username, browser, reading },
    ([found]) => checkPassword(ctx, found, { password, turn }),
    (limit) => recordRefusal(ctx, username, limit),
  )
  if (user === null) return refuse(ctx, username)
  if (user.isAdmin) ctx.disk?.makeRoom()
  const renewed = await renewHash(ctx.passwords, password, user.hash)
  // A deactivation or a new password during the check wins.
  const unchanged = and(eq(users.id, user.id), eq(users.sessionEpoch, user.epoch), eq(users.isActive, true))
  const factors = user.hasFactor ? await listSecondFactors(ctx, user.id, party) : []
  if (factors.length > 0) {
    if (renewed !== null) await ctx.store.db.update(users).set({ passwordHash: renewed }).where(unchanged).run()
    return { kind: 'half', userId: user.id, epoch: user.epoch, factors }
  }
  const signedInAt = ctx.now()
  const answer = await signInBy(ctx, user, [
    ctx.store.db
      .update(users)
      .set({
        lastLoginAt: signedInAt,
        browserLanguage: languageOf(ctx.acceptLanguage),
        ...(renewed !== null && { passwordHash: renewed }),
      })
      // If a second factor was added during the check, it is required.
      .where(and(unchanged, not(hasFactor(user.id)))),
    audit(
      ctx,
      'login_success',
      { provider: 'local', ...browserDetails(ctx), ...(browser === null && { newBrowser: true }) },
      { actor: { id: user.id, username: user.username }, onlyIfChanged: true },
    ),
    ...releaseTokens(ctx, user, signedInAt),
  ])
  return answer === null ? refuse(ctx, username) : { kind: 'signed-in', userId: user.id, epoch: user.epoch, answer }
}

type LocalUser = Awaited<ReturnType<ReturnType<typeof queries>['localByName']['all']>>[number]

/** The user if the password is correct; null if it is not, or if there is no such user. Always computes one hash. */
async function checkPassword(
  ctx: Ctx,
  user: LocalUser | undefined,
  attempt: { readonly password: string; readonly turn: 'known' | 'anonymous' },
) {
  const hash = user?.hash ?? null
  const matches = await verifyPassword(ctx.passwords, attempt, hash)
  return user !== undefined && hash !== null && matches ? { ...user, hash, hasFactor: user.hasFactor === 1 } : null
}

async function refuse(ctx: Ctx, username: string): Promise<SignIn> {
  // Decision: docs/decisions/refused-logins.md If this service checked no password, the entry does not wait for the
  // disk.
  const entry = audit(ctx, 'login_failed', failedDetails(username), { actor: nobody(username) })
  await ctx.store.atomic([entry], 'lazily')
  return { kind: 'refused' }
}

/** Records once per window, so that refusals cannot fill the disk. */
async function recordRefusal(ctx: Ctx, username: string, limit: RefusedLimit): Promise<void> {
  ctx.log.warn('Sign-ins are refused: too many have failed', { requestId: ctx.requestId, limit, ip: ctx.ip })
  const details = { ...failedDetails(username), reason: 'rate_limited', limit }
  await ctx.store.atomic([audit(ctx, 'login_failed', details, { actor: nobody(username) })], 'lazily')
}

const ATTEMPTED_NAME_LENGTH = 64

function nobody(username: string): { id: null; username: string } {
  return { id: null, username: attemptedName(username) }
}

function failedDetails(username: string): { username: string; provider: 'local' } {
  return { username: attemptedName(username), provider: 'local' }
}

function attemptedName(username: string): string {
  return [...username].slice(0, ATTEMPTED_NAME_LENGTH).join('').toWellFormed()
}

/**
 * Changes the viewer's own password. All sessions end, and on request all API tokens. The caller must continue the
 * viewer's session at `epoch`. Throws `not_a_local_user`, `wrong_password`, `weak_password`, `rate_limited`.
 */
export async function changePassword(
  ctx: SignedInCtx,
  input: { currentPassword: string; newPassword: string; revokeTokens?: boolean | undefined },
): Promise<{ epoch: number }> {
  const { id, username, authProvider } = ctx.viewer.user
  if (authProvider !== 'local') throw new AppError('not_a_local_user')
  const row = await attemptPassword(ctx, id, async () => {
    const found = await ctx.store.db
      .select({ hash: users.passwordHash, epoch: users.sessionEpoch })
      .from(users)
      .where(eq(users.id, id))
      .get()
    const matches = await verifyPassword(
      ctx.passwords,
      { password: input.currentPassword, turn: 'known' },
      found?.hash ?? null,
    )
    return found !== undefined && matches ? found : null
  })
  if (row === null) throw new AppError('wrong_password')
  if (isSamePassword(input.newPassword, input.currentPassword)) {
    const issues = [{ path: 'password', message: 'Not the current password' }]
    throw new AppError('weak_password', undefined, { issues })
  }
  const passwordHash = await hashNewPassword(ctx, input.newPassword, username)
  // A simultaneous reset wins. Then neither the hash nor the epoch are those of this change.
  const ours = and(eq(users.id, id), eq(users.passwordHash, passwordHash))
  const owned = eq(apiTokens.userId, id)
  const revoked = { tokensRevoked: sql`(select count(*) from ${apiTokens} where ${owned})` }
  const isChanged = sql`exists (select 1 from ${users} where ${ours})`
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      .set({ passwordHash, mustChangePassword: false, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, id), eq(users.sessionEpoch, row.epoch))),
    audit(ctx, 'password_changed', input.revokeTokens ? revoked : {}, { onlyIfChanged: true }),
    ...(input.revokeTokens ? [ctx.store.db.delete(apiTokens).where(and(owned, isChanged))] : []),
  ])
  const after = await ctx.store.db.select({ epoch: users.sessionEpoch }).from(users).where(ours).get()
  if (after === undefined) throw new AppError('wrong_password')
  const { credential } = ctx.viewer
  await ctx.sessions.removeForUser(id, credential.kind === 'session' ? credential.session.tokenHash : undefined)
  return after
}
