import { eq, and } from 'drizzle-orm'
import * as z from 'zod'
import { users } from '../../db/schema.ts'
import { audit } from '../audit/audit.ts'
import type { SignedInCtx } from '../base/context.ts'
import type { StoredSession } from './sessions/store.ts'
import { refuseClosedWay } from './access/require.ts'
import { AppError } from '../http/errors.ts'
import type { ProofWay, SecondFactor } from '../../shared/access/factors.ts'
import type { Context } from 'hono'
import { assertionSchema, proveByPasskey } from './factors/passkeys.ts'
import type { Proof } from './factors/proof.ts'
import { isUnchanged } from './factors/unchanged.ts'
import { proveByTotp, totpCodeSchema } from './factors/totp.ts'
import { proveByRecovery, recoveryCodeSchema } from './factors/recovery-codes.ts'
import { attemptPassword, attemptProof } from './passwords/login-limiter.ts'
import { verifyPassword } from './passwords/passwords.ts'

export const proofSchema = z.union([
  z.strictObject({ password: z.string().min(1).max(4096) }),
  z.strictObject({ code: totpCodeSchema.describe('Of the authenticator app') }),
  z.strictObject({ passkey: assertionSchema }),
  z.strictObject({ recoveryCode: recoveryCodeSchema.describe('It is used up') }),
])

type Way = Exclude<ProofWay, 'oidc'>

/**
 * Proves the viewer's identity again, and returns the method. A user of a provider can prove only a second factor of
 * this service here. Both outcomes are recorded. Throws `wrong_password`, `wrong_code`, `passkey_refused`,
 * `not_a_local_user`, `local_auth_disabled`, `rate_limited`.
 */
export async function reauthenticate(c: Context, ctx: SignedInCtx, input: z.infer<typeof proofSchema>): Promise<Way> {
  const { user, credential } = ctx.viewer
  if (credential.kind !== 'session') throw new AppError('forbidden')
  const { session } = credential
  if ('password' in input) {
    refuseClosedWay(ctx)
    if (session.oidcIssuer !== null) throw new AppError('not_a_local_user')
  }
  if (user.authProvider !== 'local') throw new AppError('not_a_local_user')
  const { id, username } = user
  const [way, isProved] =
    'password' in input
      ? (['password', await attemptPassword(ctx, id, () => orNull(isPassword(ctx, input.password)))] as const)
      : await proveFactor(c, ctx, session, input)
  if (isProved === null) {
    const details = { username, provider: 'local', reason: 'reauthentication', way }
    await ctx.store.atomic([audit(ctx, 'login_failed', details, { actor: { id, username } })], 'lazily')
    throw new AppError(REFUSALS[way])
  }
  await ctx.store.atomic([audit(ctx, 'reauthenticated', { way })])
  return way
}

async function orNull(isTrue: Promise<boolean>): Promise<true | null> {
  return (await isTrue) ? true : null
}

type Shown = Exclude<z.infer<typeof proofSchema>, { password: string }>

async function proveFactor(
  c: Context,
  ctx: SignedInCtx,
  session: StoredSession,
  input: Shown,
): Promise<readonly [way: SecondFactor, isProved: true | null]> {
  const { id } = ctx.viewer.user
  const way = 'code' in input ? 'totp' : 'passkey' in input ? 'passkey' : 'recovery'
  const prove = async (): Promise<Proof | null> => {
    if ('code' in input) return proveByTotp(ctx, id, input.code)
    if ('recoveryCode' in input) return proveByRecovery(ctx, id, input.recoveryCode)
    return (await proveByPasskey(c, ctx, 'again', id, input.passkey))?.proof ?? null
  }
  // Counted separately from passwords: somebody who knows the password must not be able to clear the count of wrong
  // codes with it.
  return [way, await attemptProof(ctx, id, async () => orNull(isClaimed(ctx, session, await prove())))]
}

async function isPassword(ctx: SignedInCtx, password: string): Promise<boolean> {
  const { id } = ctx.viewer.user
  const row = await ctx.store.db.select({ hash: users.passwordHash }).from(users).where(eq(users.id, id)).get()
  return verifyPassword(ctx.passwords, { password, turn: 'known' }, row?.hash ?? null)
}

const REFUSALS = {
  password: 'wrong_password',
  totp: 'wrong_code',
  passkey: 'passkey_refused',
  recovery: 'wrong_code',
} as const

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
