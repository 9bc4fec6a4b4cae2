import type { Context, MiddlewareHandler } from 'hono'
import type { Ctx, SignedIn, SignedInCtx } from '../base/context.ts'
import { describe } from '../http/describe.ts'
import { AppError } from '../http/errors.ts'
import { PROOF_MS, type ProofWay } from '../../shared/access/factors.ts'
import { isFuture, MINUTE_MS } from '../../shared/time.ts'
import { isByProxy } from './proxy-issuer.ts'
import { listFactors, listSecondFactors } from './factors/factors.ts'
import { relyingParty } from './factors/relying-party.ts'

/**
 * Protects actions that an unattended browser must not do: the user of a session must have proved who they are within
 * 15 minutes. Follows the access rule. Tokens are exempt. Throws `reauthentication_required` with the possible ways.
 */
export const requireFreshProof: MiddlewareHandler<SignedIn> = describe(
  async (c, next) => {
    if (isProofNeeded(c.var.ctx)) throw stale(await listWays(c.var.ctx))
    await next()
  },
  { errors: ['reauthentication_required'] },
)

/** As `requireFreshProof`, for actions that need it only with some bodies. */
export async function demandFreshProof(ctx: SignedInCtx): Promise<void> {
  if (isProofNeeded(ctx)) throw stale(await listWays(ctx))
}

/**
 * As `requireFreshProof`, for changes of how a user signs in: a user with a second factor must have proved one of them,
 * because the password alone must not get around it.
 */
export const requireFactorProof: MiddlewareHandler<SignedIn> = describe(
  async (c, next) => {
    await demandFactorProof(c, c.var.ctx)
    await next()
  },
  { errors: ['reauthentication_required'] },
)

async function demandFactorProof(c: Context, ctx: SignedInCtx): Promise<void> {
  const { credential, secondFactor, user } = ctx.viewer
  if (!secondFactor.isSetUp) return demandFreshProof(ctx)
  if (credential.kind !== 'session' || isRecent(ctx, credential.session.factorAt)) return
  const ways = await listSecondFactors(ctx, user.id, relyingParty(c, ctx))
  throw new AppError('reauthentication_required', 'Confirm that it is you with a second factor', { ways })
}

function isProofNeeded(ctx: SignedInCtx): boolean {
  const { credential } = ctx.viewer
  // A proxy that signs users in cannot ask them again: it vouches for them at each request.
  if (credential.kind !== 'session' || isByProxy(credential.session)) return false
  const { authenticatedAt, createdAt } = credential.session
  return !isRecent(ctx, authenticatedAt ?? createdAt)
}

function stale(ways: ProofWay[]): AppError {
  return new AppError(
    'reauthentication_required',
    'Confirm that it is you: your sign-in is older than 15 minutes. A program sends POST /api/auth/reauthenticate first, or uses an API token',
    {
      ways,
    },
  )
}

function isRecent({ now }: Ctx, at: number | null): boolean {
  return at !== null && now() - at < PROOF_MS && !isFuture(at, now(), MINUTE_MS)
}

/** How the viewer can prove again who they are. */
async function listWays(ctx: SignedInCtx): Promise<ProofWay[]> {
  const { credential } = ctx.viewer
  if (credential.kind === 'session' && credential.session.oidcIssuer !== null) return ['oidc']
  const { totp, passkeys } = await listFactors(ctx, ctx.viewer.user.id, null)
  return [
    'password',
    ...(totp?.isReadable ? ['totp' as const] : []),
    ...(passkeys.length > 0 ? ['passkey' as const] : []),
  ]
}
