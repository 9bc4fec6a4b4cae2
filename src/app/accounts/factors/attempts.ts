import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import * as z from 'zod'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { randomToken } from '../sessions/session-token.ts'
import { ownCookie } from '../sessions/cookies.ts'
import type { CheckedUser } from './unchanged.ts'

const LABEL = 'second-factor-attempt'
const LIFETIME_MS = 5 * MINUTE_MS

/** Wrong codes that end an attempt. */
const MAX_WRONG = 5

const contentSchema = z.strictObject({
  id: z.string(),
  userId: z.int(),
  epoch: z.int(),
  expiresAt: z.int(),
})

/** A sign-in whose password was right and which waits for the second factor. */
export type FactorAttempt = CheckedUser & { readonly id: string }

/** Stores the attempt in the browser for five minutes, sealed in a cookie. The service stores nothing. */
export async function handOutAttempt(c: Context, ctx: Ctx, user: CheckedUser): Promise<void> {
  const content: z.infer<typeof contentSchema> = {
    id: randomToken(),
    userId: user.userId,
    epoch: user.epoch,
    expiresAt: ctx.now() + LIFETIME_MS,
  }
  const sealed = await seal(ctx.config.SESSION_SECRET, LABEL, JSON.stringify(content))
  const { name, options } = ownCookie(c, ctx, 'mesh_attempt', 'Strict')
  setCookie(c, name, sealed, { ...options, maxAge: LIFETIME_MS / 1000 })
}

/** The attempt in the browser's cookie; null without a valid one. */
export async function findAttempt(c: Context, ctx: Ctx): Promise<FactorAttempt | null> {
  const sealed = getCookie(c, ownCookie(c, ctx, 'mesh_attempt').name)
  const text = sealed === undefined ? null : await unseal(ctx.config.SESSION_SECRET, LABEL, sealed)
  if (text === null) return null
  const { expiresAt, ...attempt } = contentSchema.parse(JSON.parse(text))
  const left = expiresAt - ctx.now()
  // A longer time is impossible unless the clock was ahead when the attempt began.
  return left > 0 && left <= LIFETIME_MS ? attempt : null
}

/**
 * Counts a code before it is checked, so that simultaneous codes cannot pass together. Throws `attempt_ended` after
 * five wrong ones.
 */
export async function countCode({ sessions, now }: Ctx, attempt: FactorAttempt): Promise<void> {
  const { count } = await sessions.hit(`factor:attempt:${attempt.id}`, LIFETIME_MS, now())
  if (count > MAX_WRONG) throw new AppError('attempt_ended')
}

/** Ends the attempt after a correct code. Throws `attempt_ended` if it was already used. */
export async function endAttempt(c: Context, ctx: Ctx, attempt: FactorAttempt): Promise<void> {
  const { count } = await ctx.sessions.hit(`factor:used:${attempt.id}`, LIFETIME_MS, ctx.now())
  if (count > 1) throw new AppError('attempt_ended')
  const { name, options } = ownCookie(c, ctx, 'mesh_attempt', 'Strict')
  deleteCookie(c, name, options)
}
