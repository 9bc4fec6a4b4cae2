import { eq, and } from 'drizzle-orm'
import * as z from 'zod'
import { users } from '../../db/schema.ts'
import { audit } from '../audit/audit.ts'
import type { SignedInCtx } from '../context.ts'
import type { StoredSession } from './sessions/store.ts'
import { AppError } from '../http/errors.ts'
import type { ProofWay } from '../../shared/access/factors.ts'
import type { Context } from 'hono'
import { assertionSchema, proveByPasskey } from './factors/passkeys.ts'
import type { Proof } from './factors/proof.ts'
import { isUnchanged } from './factors/unchanged.ts'
import { proveByTotp, totpCodeSchema } from './factors/totp.ts'
import { attemptPassword } from './local/login-limiter.ts'
import { verifyPassword } from './local/passwords.ts'

export const proofSchema = z.union([
  z.strictObject({ password: z.string().min(1).max(4096) }),
  z.strictObject({ code: totpCodeSchema.describe('Of the authenticator app') }),
  z.strictObject({ passkey: assertionSchema }),
])

/**
 * Proves again who the viewer is; a new session may replace the returned one. Both outcomes are recorded. Throws
 * `wrong_password`, `wrong_code`, `passkey_refused`, `not_a_local_user`, `rate_limited`.
 */
export async function reauthenticate(
  c: Context,
  ctx: SignedInCtx,
  input: z.infer<typeof proofSchema>,
): Promise<StoredSession> {
  const { user, credential } = ctx.viewer
  if (credential.kind !== 'session') throw new AppError('forbidden')
  const { session } = credential
  if (session.oidcIssuer !== null) throw new AppError('not_a_local_user')
  const way: Exclude<ProofWay, 'oidc'> = 'password' in input ? 'password' : 'code' in input ? 'totp' : 'passkey'
  const check = async (): Promise<boolean> => {
    if ('password' in input) return isPassword(ctx, input.password)
    if ('code' in input) return isClaimed(ctx, session, await proveByTotp(ctx, user.id, input.code))
    const used = await proveByPasskey(c, ctx, 'again', user.id, input.passkey)
    return isClaimed(ctx, session, used?.proof ?? null)
  }
  const isProved = await attemptPassword(ctx, user.id, async () => ((await check()) ? true : null))
  const { id, username } = user
  if (isProved === null) {
    const details = { username, provider: 'local', reason: 'reauthentication', way }
    await ctx.store.atomic([audit(ctx, 'login_failed', details, { actor: { id, username } })], 'lazily')
    throw new AppError(REFUSALS[way])
  }
  await ctx.store.atomic([audit(ctx, 'reauthenticated', { way })])
  return session
}

async function isPassword(ctx: SignedInCtx, password: string): Promise<boolean> {
  const { id } = ctx.viewer.user
  const row = await ctx.store.db.select({ hash: users.passwordHash }).from(users).where(eq(users.id, id)).get()
  return verifyPassword(ctx.passwords, { password, turn: 'known' }, row?.hash ?? null)
}

const REFUSALS = { password: 'wrong_password', totp: 'wrong_code', passkey: 'passkey_refused' } as const

/** Uses up a proof; false if another request was faster. */
async function isClaimed(ctx: SignedInCtx, { userId, epoch }: StoredSession, proof: Proof | null): Promise<boolean> {
  if (proof === null) return false
  await ctx.store.atomic([proof.claim(isUnchanged(ctx.store, { userId, epoch }))])
  const won = await ctx.store.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, userId), proof.isClaimed))
    .get()
  return won !== undefined
}
