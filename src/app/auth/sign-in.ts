import { and, eq, sql } from 'drizzle-orm'
import { users } from '../../db/schema.ts'
import { audit } from '../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../context.ts'
import { AppError } from '../errors.ts'
import { nextEpoch } from '../users/users.ts'
import { takeLoginAttempt } from './login-limiter.ts'
import { hashNewPassword, renewHash, verifyPassword } from './passwords.ts'

export type SignIn = { ok: true; userId: number; epoch: number } | { ok: false }

/**
 * Checks a local user's password and records the outcome. Unknown, inactive and OpenID Connect users take the same
 * time and get the same answer as a wrong password. Throws `local_auth_disabled`, `rate_limited`.
 */
export async function signIn(ctx: Ctx, username: string, password: string): Promise<SignIn> {
  if (ctx.config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
  const attempt = await takeLoginAttempt(ctx, username)
  const user = await ctx.store.db
    .select({ id: users.id, username: users.username, hash: users.passwordHash, epoch: users.sessionEpoch })
    .from(users)
    .where(
      and(
        sql`lower(${users.username}) = lower(${username})`,
        eq(users.isActive, true),
        eq(users.authProvider, 'local'),
      ),
    )
    .get()
  const hash = user?.hash ?? null
  const matches = await verifyPassword(ctx.passwords, password, hash).catch(attempt.takeBackAndThrow)
  if (user === undefined || hash === null || !matches) {
    await ctx.store.atomic([audit(ctx, 'login_failed', failedDetails(username), { actor: nobody(username) })])
    return { ok: false }
  }
  await attempt.succeed()
  const renewed = await renewHash(ctx.passwords, password, hash)
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      .set({ lastLoginAt: ctx.now(), ...(renewed !== null && { passwordHash: renewed }) })
      .where(and(eq(users.id, user.id), eq(users.passwordHash, hash))),
    audit(ctx, 'login_success', { provider: 'local' }, { actor: { id: user.id, username: user.username } }),
  ])
  return { ok: true, userId: user.id, epoch: user.epoch }
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
 * Changes the viewer's own password: all sessions end, and the caller gets a new one by `epoch`.
 * Throws `local_auth_disabled`, `not_a_local_user`, `wrong_password`, `weak_password`, `rate_limited`.
 */
export async function changePassword(
  ctx: SignedInCtx,
  input: { currentPassword: string; newPassword: string },
): Promise<{ epoch: number }> {
  if (ctx.config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
  const { id, username, authProvider } = ctx.viewer.user
  if (authProvider !== 'local') throw new AppError('not_a_local_user')
  const attempt = await takeLoginAttempt(ctx, username)
  const row = await ctx.store.db.select({ hash: users.passwordHash }).from(users).where(eq(users.id, id)).get()
  const matches = await verifyPassword(ctx.passwords, input.currentPassword, row?.hash ?? null).catch(
    attempt.takeBackAndThrow,
  )
  if (!matches) throw new AppError('wrong_password')
  await attempt.succeed()
  if (input.newPassword === input.currentPassword) {
    const issues = [{ path: 'password', message: 'Not the current password' }]
    throw new AppError('weak_password', undefined, { issues })
  }
  const passwordHash = await hashNewPassword(ctx, input.newPassword, username)
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      .set({ passwordHash, mustChangePassword: false, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, id), eq(users.passwordHash, row?.hash ?? ''))),
    audit(ctx, 'password_changed', {}, { onlyIfChanged: true }),
  ])
  // A reset at the same instant wins: then the hash is not ours, and neither is the new epoch.
  const ours = and(eq(users.id, id), eq(users.passwordHash, passwordHash))
  const after = await ctx.store.db.select({ epoch: users.sessionEpoch }).from(users).where(ours).get()
  if (after === undefined) throw new AppError('wrong_password')
  await ctx.sessions.removeForUser(id)
  return after
}
