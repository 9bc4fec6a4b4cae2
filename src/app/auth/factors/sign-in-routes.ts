import { type Context, Hono } from 'hono'
import * as z from 'zod'
import { anyone, requireLocalAuth } from '../../http/access.ts'
import type { AppEnv, Ctx } from '../../context.ts'
import { answers } from '../../http/describe.ts'
import { validate } from '../../http/validate.ts'
import { rememberBrowser } from '../local/known-browser.ts'
import { startSession } from '../sessions/sessions.ts'
import { signedInAnswer, signedInSchema } from '../viewer.ts'
import { proveByRecovery, recoveryCodeSchema } from './recovery-codes.ts'
import { finishAttempt } from './second-step.ts'
import { proveByTotp, totpCodeSchema } from './totp.ts'
import type { CheckedUser } from './unchanged.ts'

const ERRORS = ['invalid_code', 'attempt_ended', 'local_auth_disabled', 'rate_limited'] as const

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

async function enter(c: Context, ctx: Ctx, { userId, epoch }: CheckedUser) {
  await startSession(c, ctx, { id: userId, epoch, oidcIssuer: null, factors: 2 })
  await rememberBrowser(c, ctx, userId)
  return signedInAnswer(ctx, userId)
}
