import type { MiddlewareHandler } from 'hono'
import type { Ctx, SignedIn, SignedInCtx } from '../context.ts'
import type { StoredSession } from './sessions/store.ts'
import { describe } from '../http/describe.ts'
import { AppError } from '../http/errors.ts'
import { PROOF_MS, type ProofWay } from '../../shared/access/factors.ts'
import { isFuture, MINUTE_MS } from '../../shared/time.ts'
import { isByProxy } from './proxy-issuer.ts'
import { listFactors } from './factors/factors.ts'

/**
 * Protects actions that an unattended browser must not do: the user of a session must have proved who they are within
 * 15 minutes. Follows the access rule. Tokens are exempt. Throws `reauthentication_required` with the possible ways.
 */
export const requireFreshProof: MiddlewareHandler<SignedIn> = describe(
  (c, next) => (isProofNeeded(c.var.ctx) ? refuse(c.var.ctx) : next()),
  { errors: ['reauthentication_required'] },
)

/** As `requireFreshProof`, for actions that need it only with some bodies. */
export async function demandFreshProof(ctx: SignedInCtx): Promise<void> {
  if (isProofNeeded(ctx)) await refuse(ctx)
}

function isProofNeeded(ctx: SignedInCtx): boolean {
  const { credential } = ctx.viewer
  // A proxy that signs users in cannot ask them again: it vouches for them at each request.
  return credential.kind === 'session' && !isByProxy(credential.session) && !isFresh(ctx, credential.session)
}

async function refuse(ctx: SignedInCtx): Promise<never> {
  throw new AppError('reauthentication_required', 'Confirm that it is you: your sign-in is older than 15 minutes', {
    ways: await listWays(ctx),
  })
}

function isFresh(ctx: Ctx, { authenticatedAt, createdAt }: StoredSession): boolean {
  const [now, at] = [ctx.now(), authenticatedAt ?? createdAt]
  return now - at < PROOF_MS && !isFuture(at, now, MINUTE_MS)
}

/** How the viewer can prove again who they are. */
async function listWays(ctx: SignedInCtx): Promise<ProofWay[]> {
  const { credential } = ctx.viewer
  if (credential.kind === 'session' && credential.session.oidcIssuer !== null) return ['oidc']
  const { totp, passkeys } = await listFactors(ctx, ctx.viewer.user.id)
  return [
    'password',
    ...(totp?.isReadable ? ['totp' as const] : []),
    ...(passkeys.length > 0 ? ['passkey' as const] : []),
  ]
}
