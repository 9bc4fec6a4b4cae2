import type { Identity, Provider } from './provider.ts'
import type { Context } from 'hono'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { addressKey } from '../../http/limits/address-key.ts'
import { type Attempt, handOutAttempt, newAttempt, takeAttempt } from './attempts.ts'
import { latestLogout, noteProviderSession, refuseEndedSession } from './ending.ts'
import { OIDC_FAILURES, OidcFailure, type OidcReason } from './failure.ts'
import { errorCode } from './protocol/token.ts'
import { judgeGroups } from './groups.ts'
import { acceptInvitation } from './invitations.ts'
import { linkIdentity } from './links.ts'
import { removeEnded, shutOut } from './shut-out.ts'
import { findAccount, signInIdentity, type SignInWay, signInWay } from './users.ts'
import { knownUsers, rememberBrowser } from '../sessions/known-browser.ts'
import { hashToken } from '../sessions/session-token.ts'
import { startSession } from '../sessions/sessions.ts'

export type OidcOutcome =
  | { readonly ok: true; readonly location: string }
  | { readonly ok: false; readonly error: (typeof OIDC_FAILURES)[OidcReason]; readonly page: '/login' | '/account' }

type SignInPurpose = {
  readonly returnTo: string
  readonly how: 'as-usual' | 'anew'
  /** The user who proves again who they are. */
  readonly again?: number | null
  /** The user whose account is linked by it. */
  readonly link?: number | null
  /** The token of an invitation. */
  readonly invitation?: string | null
}

/** Begins a sign-in that ends at `returnTo`: the address at the provider, and a cookie that binds it to the browser. */
export async function beginSignIn(
  c: Context,
  ctx: Ctx,
  provider: Provider,
  { returnTo, how, again = null, link = null, invitation = null }: SignInPurpose,
): Promise<OidcOutcome> {
  const attempt = newAttempt()
  try {
    const location = await provider.authorizationUrl(attempt.secrets, how)
    await handOutAttempt(c, ctx, attempt, {
      issuer: provider.issuer,
      returnTo,
      askedSince: how === 'anew' ? ctx.now() : null,
      again,
      link,
      invitation: invitation === null ? null : hashToken(invitation),
    })
    return { ok: true, location }
  } catch (error) {
    if (!(error instanceof OidcFailure)) throw error
    // Nobody has tried to sign in yet, so this failure of the provider is only logged.
    logFailure(ctx, error, provider.settings.id)
    return { ok: false, error: OIDC_FAILURES[error.reason], page: pageOf(link) }
  }
}

/** The page that shows a failure. A user who links an account is already signed in. */
function pageOf(link: number | null): '/login' | '/account' {
  return link === null ? '/login' : '/account'
}

/** What the provider sent back through the browser. */
type Arrival = {
  /** The provider that the path names; null: the path without a name. */
  readonly at: string | null
  readonly query: Readonly<Record<string, readonly string[]>>
}

/**
 * Completes a sign-in with the parameters of the provider's redirect: starts the session, links the viewer's account,
 * or records the failure.
 */
export async function finishSignIn(c: Context, ctx: Ctx, { at, query }: Arrival): Promise<OidcOutcome> {
  let page: '/login' | '/account' = '/login'
  let by: SignInWay = { provider: 'oidc' }
  let ended: Awaited<ReturnType<typeof shutOut>> | null = null
  try {
    if (Object.values(query).some((values) => values.length > 1)) {
      throw new OidcFailure(query['state']?.length === 1 ? 'parameter_repeated' : 'state_invalid')
    }
    const attempt = await takeAttempt(c, ctx, query['state']?.[0])
    page = pageOf(attempt.link)
    const provider = ctx.providers.find(({ issuer }) => issuer === attempt.issuer)
    if (provider === undefined) throw new OidcFailure('attempt_of_another_issuer')
    by = signInWay(provider.settings)
    refuseMixUp(ctx, provider, at)
    const since = await latestLogout(ctx)
    const identity = await identify(provider, attempt, query)
    const { authenticatedAt, factors } = identity
    refuseOldProof(attempt, authenticatedAt)
    await refuseOtherProver(ctx, attempt, identity)
    const verdict = await judgeGroups(ctx, provider.settings, identity.groups)
    if (verdict.kind === 'refuse') {
      if (verdict.isCertain) ended = await shutOut(ctx, provider.settings, identity)
      throw verdict.failure
    }
    if (attempt.link !== null) {
      await linkIdentity(ctx, attempt.link, identity)
      return { ok: true, location: attempt.returnTo }
    }
    if (attempt.invitation !== null) await acceptInvitation(ctx, attempt.invitation, identity)
    const known = await knownUsers(c, ctx)
    const { id, epoch, isLocal } = await signInIdentity(ctx, provider.settings, identity, verdict, known)
    const { issuer: oidcIssuer } = identity
    const tokenHash = await startSession(c, ctx, { id, epoch, oidcIssuer, factors, authenticatedAt })
    await noteProviderSession(ctx, tokenHash, { userId: id, identity })
    await refuseEndedSession(ctx, tokenHash, { identity, since })
    if (isLocal) await rememberBrowser(c, ctx, id)
    return { ok: true, location: attempt.returnTo }
  } catch (error) {
    if (!(error instanceof OidcFailure)) throw error
    await recordFailure(ctx, error, by, ended?.statements)
    await removeEnded(ctx, ended?.sessions ?? [])
    return { ok: false, error: OIDC_FAILURES[error.reason], page }
  }
}

/**
 * A malicious provider can redirect the browser to another one with the state of its own attempt, and many providers do
 * not name themselves in the answer. So the address at which the answer arrives decides, before any provider gets the
 * code (RFC 9700, 4.4).
 */
function refuseMixUp({ providers }: Ctx, provider: Provider, at: string | null): void {
  const isItsOwn = at === null ? provider === providers[0] : at === provider.settings.id
  if (!isItsOwn) throw new OidcFailure('callback_of_another_provider')
}

/** The allowed difference between the clocks of provider and service. */
const LEEWAY_MS = 60_000

/** A user who removed `prompt=login` from the provider's URL has proved nothing. */
function refuseOldProof({ askedSince }: Attempt, authenticatedAt: number | null): void {
  if (askedSince === null) return
  if (authenticatedAt === null || authenticatedAt < askedSince - LEEWAY_MS) throw new OidcFailure('claim_auth_time')
}

/** Proving one's identity in the middle of a task must not switch to another user. */
async function refuseOtherProver(ctx: Ctx, { again }: Attempt, identity: Identity): Promise<void> {
  if (again === null) return
  if ((await findAccount(ctx.store, identity))?.id !== again) throw new OidcFailure('proof_of_another_user')
}

// The service never signs in silently, so if consent is missing, the user was asked and refused.
const DENIALS: ReadonlySet<string> = new Set(['access_denied', 'consent_required'])

/** The code is sent only to the provider of the attempt, whichever provider the browser comes from. */
async function identify(
  provider: Provider,
  attempt: Attempt,
  query: Readonly<Record<string, readonly string[]>>,
): Promise<Identity> {
  const { iss: [iss = null] = [], error: [error = null] = [], code: [code = null] = [] } = query
  if (iss !== null && iss !== attempt.issuer) throw new OidcFailure('callback_iss_wrong')
  if (error !== null) {
    const known = errorCode({ error })
    throw new OidcFailure(DENIALS.has(known) ? 'provider_denied' : 'provider_error', { error: known })
  }
  return provider.identify({ code: code === '' ? null : code, iss }, attempt)
}

/** Callbacks that anybody can send without having begun a sign-in. */
export const STRAY: ReadonlySet<OidcReason> = new Set([
  'state_invalid',
  'attempt_unknown',
  'attempt_expired',
  'attempt_used',
  'parameter_repeated',
])

/** The failures recorded per allowed failed sign-in, because one failed sign-in may cause several. */
const STRAY_FACTOR = 5
const BEGUN_FACTOR = 20

/**
 * All addresses together get this many times the allowance of one, because an IPv6 network has thousands of addresses.
 */
const ADDRESSES_FACTOR = 20

/**
 * Logs and audits a failed sign-in. Beyond a number of failures per address, and for all addresses, it does neither
 * until the window ends, because the disk is finite. The limit refuses nobody. The statements `also` run in the same
 * step in any case.
 */
export async function recordFailure(
  ctx: Ctx,
  failure: OidcFailure,
  by: SignInWay,
  also: readonly Statement[] = [],
): Promise<void> {
  const entries = await failureEntries(ctx, failure, by)
  const [first, ...rest] = [...also, ...entries]
  if (first !== undefined) await ctx.store.atomic([first, ...rest], also.length === 0 ? 'lazily' : undefined)
}

/** The entry of a failure, unless too many were recorded. */
async function failureEntries(ctx: Ctx, failure: OidcFailure, by: SignInWay): Promise<Statement[]> {
  const { reason, details, unknownIdentity } = failure
  const { LOGIN_MAX_FAILURES, LOGIN_WINDOW_SECONDS } = ctx.config
  const [kind, factor] = STRAY.has(reason) ? ['stray', STRAY_FACTOR] : ['begun', BEGUN_FACTOR]
  const isOver = async (whose: string, most: number) => {
    const { count } = await ctx.sessions.hit(`oidc:${kind}:${whose}`, LOGIN_WINDOW_SECONDS * 1000, ctx.now())
    return count > most
  }
  const most = LOGIN_MAX_FAILURES * factor
  if (await isOver(ctx.ip === null ? 'none' : addressKey(ctx.ip), most)) return []
  if (await isOver('all', most * ADDRESSES_FACTOR)) return []
  logFailure(ctx, failure, by.providerId)
  const recorded = { ...by, reason, ...details, ...unknownIdentity }
  return [audit(ctx, 'oidc_login_failed', recorded, { actor: { id: null, username: null } })]
}

function logFailure(ctx: Ctx, { reason, details }: OidcFailure, provider: string | undefined): void {
  const by = provider === undefined ? {} : { provider }
  ctx.log.warn('Sign-in with OpenID Connect failed', { requestId: ctx.requestId, ...by, reason, ...details })
}
