import { type Context, Hono } from 'hono'
import * as z from 'zod'
import { eq } from 'drizzle-orm'
import { users } from '../../../db/schema.ts'
import { AppError } from '../../http/errors.ts'
import { requireLocalAuth } from '../access/require.ts'
import type { AppEnv, Ctx } from '../../base/context.ts'
import { answers, anyone } from '../../http/describe.ts'
import { validate } from '../../http/validate.ts'
import { findKnownBrowserOf, rememberBrowser } from '../sessions/known-browser.ts'
import { attemptPasskey } from '../passwords/login-limiter.ts'
import { startSession } from '../sessions/sessions.ts'
import { signedInAnswer, signedInSchema } from '../access/viewer.ts'
import { findAttempt } from '../factors/attempts.ts'
import {
  askedPurpose,
  askForPasskey,
  assertionSchema,
  claimedOwner,
  optionsSchema,
  proveByPasskey,
  recordRefusedPasskey,
} from '../factors/passkeys.ts'
import { proveByRecovery, recoveryCodeSchema } from '../factors/recovery-codes.ts'
import { claimSignIn, finishAttempt } from '../factors/second-step.ts'
import { proveByTotp, totpCodeSchema } from '../factors/totp.ts'
import type { CheckedUser } from '../factors/unchanged.ts'

const ERRORS = ['invalid_code', 'attempt_ended', 'local_auth_disabled', 'rate_limited'] as const

const passkeyQuery = z.strictObject({
  alone: z.literal('true').optional().describe('Instead of a password, also while a sign-in waits for a second factor'),
})

/** The second step of a sign-in. */
export const factorSignInRoutes = new Hono<AppEnv>()
  .post(
    '/totp',
    anyone,
    requireLocalAuth,
    answers('Finish a sign-in with the code of an authenticator app', { 200: signedInSchema }, [...ERRORS]),
    validate('json', z.strictObject({ code: totpCodeSchema })),
    async (c) => {
      const { ctx } = c.var
      const { code } = c.req.valid('json')
      const user = await finishAttempt(c, ctx, 'totp', ({ userId }) => proveByTotp(ctx, userId, code))
      return c.json(await enter(c, ctx, user))
    },
  )
  .post(
    '/recovery',
    anyone,
    requireLocalAuth,
    answers('Finish a sign-in with a recovery code, which is used up', { 200: signedInSchema }, [...ERRORS]),
    validate('json', z.strictObject({ code: recoveryCodeSchema })),
    async (c) => {
      const { ctx } = c.var
      const { code } = c.req.valid('json')
      const user = await finishAttempt(c, ctx, 'recovery', ({ userId }) => proveByRecovery(ctx, userId, code))
      return c.json(await enter(c, ctx, user))
    },
  )
  .post(
    '/passkey/options',
    anyone,
    requireLocalAuth,
    answers(
      'Passkey options for the browser: for the second step of a sign-in, or for signing in without a password',
      { 200: optionsSchema },
      ['local_auth_disabled', 'passkeys_unavailable'],
    ),
    validate('query', passkeyQuery),
    async (c) => {
      const attempt = c.req.valid('query').alone === 'true' ? null : await findAttempt(c, c.var.ctx)
      const purpose = attempt === null ? 'enter' : 'second'
      const options = await askForPasskey(c, c.var.ctx, purpose, attempt?.userId ?? null)
      return c.json({ options })
    },
  )
  .post(
    '/passkey',
    anyone,
    requireLocalAuth,
    answers('Sign in with a passkey, or finish a sign-in with it', { 200: signedInSchema }, [
      ...ERRORS,
      'passkey_refused',
      'passkeys_unavailable',
    ]),
    validate('json', z.strictObject({ response: assertionSchema })),
    async (c) => {
      const { ctx } = c.var
      const { response } = c.req.valid('json')
      if ((await askedPurpose(c, ctx)) === 'enter' || (await findAttempt(c, ctx)) === null)
        return c.json(await enter(c, ctx, await enterByPasskey(c, ctx, response)))
      const user = await finishAttempt(c, ctx, 'passkey', async ({ userId }) => {
        const used = await proveByPasskey(c, ctx, 'second', userId, response)
        return used?.proof ?? null
      })
      return c.json(await enter(c, ctx, user))
    },
  )

/** Signs in a user who unlocked their passkey, without a password. Throws `passkey_refused`, `rate_limited`. */
async function enterByPasskey(c: Context, ctx: Ctx, response: z.infer<typeof assertionSchema>): Promise<CheckedUser> {
  const owner = await claimedOwner(c, ctx, response)
  const browser = owner === null ? null : await findKnownBrowserOf(c, ctx, owner)
  const checked = await attemptPasskey(ctx, { owner, browser }, () => claimByPasskey(c, ctx, response))
  if (checked === null) throw new AppError('passkey_refused')
  return checked
}

async function claimByPasskey(
  c: Context,
  ctx: Ctx,
  response: z.infer<typeof assertionSchema>,
): Promise<CheckedUser | null> {
  const used = await proveByPasskey(c, ctx, 'enter', null, response)
  const { id, username, epoch, isActive, authProvider } = {
    id: users.id,
    username: users.username,
    epoch: users.sessionEpoch,
    isActive: users.isActive,
    authProvider: users.authProvider,
  }
  const user =
    used === null
      ? undefined
      : await ctx.store.db
          .select({ id, username, epoch, isActive, authProvider })
          .from(users)
          .where(eq(users.id, used.userId))
          .get()
  if (used === null || user === undefined) return null
  if (!user.isActive || user.authProvider !== 'local') {
    await recordRefusedPasskey(ctx, user.id, 'user_inactive')
    return null
  }
  const checked = { userId: user.id, epoch: user.epoch }
  const isNewBrowser = (await findKnownBrowserOf(c, ctx, user.id)) === null
  return (await claimSignIn(ctx, checked, used.proof, { actor: user, isNewBrowser, isAlone: true })) ? checked : null
}

async function enter(c: Context, ctx: Ctx, { userId, epoch }: CheckedUser) {
  await startSession(c, ctx, { id: userId, epoch, oidcIssuer: null, factors: 2, factorAt: ctx.now() })
  await rememberBrowser(c, ctx, userId)
  return signedInAnswer(ctx, userId)
}
