import type { Context } from 'hono'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { OidcFailure } from './failure.ts'
import { latestLogout, moveProviderSession } from './ending.ts'
import { subjectAt } from '../users/identities.ts'
import { startSession } from '../sessions/sessions.ts'
import type { StoredSession } from '../sessions/store.ts'

/**
 * Replaces the viewer's session with one under another token that also has these `changes`, for example a new proof. It
 * ends when the old one would have ended. Returns the hash of the new token. Throws `unauthenticated` if the session has
 * ended meanwhile.
 */
export async function continueSession(
  c: Context,
  ctx: SignedInCtx,
  changes: Partial<Pick<StoredSession, 'epoch' | 'authenticatedAt' | 'factors' | 'factorAt'>>,
): Promise<string> {
  const { credential, user } = ctx.viewer
  if (credential.kind !== 'session') throw new AppError('forbidden')
  const { session } = credential
  const since = await latestLogout(ctx)
  // Somebody may have ended it since the request began.
  if (!(await ctx.sessions.remove(session.tokenHash))) throw new AppError('unauthenticated')
  const { epoch, createdAt, oidcIssuer, factors, factorAt } = session
  const authenticatedAt = session.authenticatedAt ?? createdAt
  const kept = { id: session.userId, epoch, createdAt, oidcIssuer, factors, factorAt, authenticatedAt }
  const tokenHash = await startSession(c, ctx, { ...kept, ...changes })
  if (oidcIssuer === null) return tokenHash
  const subject = (await subjectAt(ctx.store, user.id, oidcIssuer)) ?? ''
  await moveProviderSession(ctx, session.tokenHash, tokenHash, { subject, since }).catch((error: unknown) => {
    throw error instanceof OidcFailure ? new AppError('unauthenticated') : error
  })
  return tokenHash
}
