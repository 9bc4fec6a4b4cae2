import { and, eq, not, type SQL } from 'drizzle-orm'
import type { Context } from 'hono'
import { users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { nextEpoch } from '../users/users.ts'
import { continueSession } from '../oidc/continue.ts'
import { hasFactor } from '../users/has-factor.ts'
import { isUnchanged } from './unchanged.ts'

/** How adding a second factor affects the user's sessions. */
export type Adding = {
  /** True while the session is valid and its user still has none, or still has some factors, as when this began. */
  readonly unchanged: SQL | undefined
  /** Statements for the end of the atomic step. If `isAdded` is true, the first factor ends all sessions. */
  readonly statements: (isAdded: SQL) => Statement[]
  /** Run after the step: the session that added the first factor has proved it, and continues under another token. */
  readonly finish: (c: Context) => Promise<void>
}

/**
 * Begins to add a second factor to the viewer's account. Adding the first one ends all other sessions of the user,
 * because they began with the password alone. Decision: docs/decisions/factors-protect-factors.md
 */
export async function beginAdding(ctx: SignedInCtx): Promise<Adding> {
  const { user, credential } = ctx.viewer
  if (credential.kind !== 'session') throw new AppError('forbidden')
  const { epoch, oidcIssuer, factors } = credential.session
  const { db } = ctx.store
  const has = hasFactor(user.id)
  const isFirst =
    (await db
      .select({ id: users.id })
      .from(users)
      .where(and(eq(users.id, user.id), has))
      .get()) === undefined
  const same = isUnchanged(ctx.store, { userId: user.id, epoch })
  return {
    unchanged: and(same, isFirst ? not(has) : has),
    statements: (isAdded) =>
      isFirst
        ? [
            db
              .update(users)
              .set({ sessionEpoch: nextEpoch })
              .where(and(eq(users.id, user.id), eq(users.sessionEpoch, epoch), isAdded)),
          ]
        : [],
    finish: async (c) => {
      if (!isFirst) return
      const proved = { epoch: epoch + 1, factors: oidcIssuer === null ? 2 : factors, factorAt: ctx.now() }
      const kept = await continueSession(c, ctx, proved)
      await ctx.sessions.removeForUser(user.id, kept)
    },
  }
}
