import type { AttemptSecrets } from './provider.ts'
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import * as z from 'zod'
import type { Ctx } from '../../base/context.ts'
import { hmacSha256, isSameText, toBase64url } from '../../base/crypto.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'
import { ownCookie } from '../sessions/cookies.ts'
import { OidcFailure } from './failure.ts'
import { MINUTE_MS } from '../../../shared/time.ts'

const LIFETIME_MS = 10 * MINUTE_MS

/**
 * Unfinished sign-ins of one browser: beyond these limits the oldest are dropped. A server accepts 16 KB of headers.
 */
const MAX_IN_BROWSER = 10
const MAX_BYTES_IN_BROWSER = 6000

/** A sign-in in progress: what is sent to the provider and must come back. */
export type Attempt = AttemptSecrets & {
  readonly issuer: string
  readonly returnTo: string
  readonly askedSince: number | null
  /** The user who proves again who they are; null: nobody. */
  readonly again: number | null
  /** The user whose account is to be linked; null: none. */
  readonly link: number | null
  /** Hash of the token of an invitation; null: none. */
  readonly invitation: string | null
}

const sealedSchema = z.strictObject({
  seed: z.string(),
  issuer: z.string(),
  returnTo: z.string(),
  /** The provider must have asked the user since this time, in ms; null: at any time. */
  askedSince: z.number().nullable().default(null),
  again: z.number().nullable().default(null),
  link: z.number().nullable().default(null),
  invitation: z.string().nullable().default(null),
  expiresAt: z.number(),
})

/** All secrets of an attempt are derived from one random value, the seed. */
function secretsOf(id: string, seed: string): AttemptSecrets {
  const derive = (purpose: string) => hmacSha256(seed, `oidc:${purpose}:${id}`)
  return { state: `${id}.${derive('state')}`, nonce: derive('nonce'), verifier: derive('verifier') }
}

export type NewAttempt = { readonly id: string; readonly seed: string; readonly secrets: AttemptSecrets }

/** Secrets for a new attempt. */
export function newAttempt(): NewAttempt {
  const id = toBase64url(crypto.getRandomValues(new Uint8Array(12)))
  const seed = randomToken()
  return { id, seed, secrets: secretsOf(id, seed) }
}

/**
 * Stores an attempt in the browser for ten minutes, sealed in its own cookie. The service stores nothing, so endless
 * attempts cost the database nothing and displace no other user's. Decision:
 * docs/decisions/short-decisions.md#a-pending-openid-connect-sign-in-is-stored-in-the-browser
 */
export async function handOutAttempt(
  c: Context,
  ctx: Ctx,
  { id, seed }: NewAttempt,
  purpose: Omit<Attempt, keyof AttemptSecrets>,
): Promise<void> {
  const content: z.infer<typeof sealedSchema> = { ...purpose, seed, expiresAt: ctx.now() + LIFETIME_MS }
  const sealed = await seal(ctx.config.SESSION_SECRET, labelOf(id), JSON.stringify(content))
  // Lax: the provider sends the browser back by a top-level GET from another site.
  const { name: beginning, options } = ownCookie(c, ctx, 'mesh_oidc')
  const prefix = `${beginning}_`
  for (const name of surplus(getCookie(c), prefix, sealed.length)) deleteCookie(c, name, options)
  setCookie(c, `${prefix}${id}`, sealed, { ...options, maxAge: LIFETIME_MS / 1000 })
}

/** The attempts in a browser that must be dropped to make room for `bytes` more. */
function surplus(cookies: Readonly<Record<string, string>>, prefix: string, bytes: number): string[] {
  const waiting = Object.entries(cookies).filter(([name]) => name.startsWith(prefix))
  let left = MAX_BYTES_IN_BROWSER - bytes
  // A browser sends its oldest cookie first: RFC 6265, section 5.4.
  const kept = waiting.toReversed().findIndex(([, value], i) => {
    left -= value.length
    return i === MAX_IN_BROWSER - 1 || left < 0
  })
  return kept === -1 ? [] : waiting.slice(0, waiting.length - kept).map(([name]) => name)
}

/**
 * Returns the attempt on which a callback's `state` and the browser's cookie agree. Before it returns, the state is
 * marked as used for all instances. Throws an `OidcFailure`.
 */
export async function takeAttempt(c: Context, ctx: Ctx, state: string | undefined): Promise<Attempt> {
  const id = /^([\w-]{16})\.[\w-]{43}$/.exec(state ?? '')?.[1]
  if (id === undefined || state === undefined) throw new OidcFailure('state_invalid')
  const { name, options } = ownCookie(c, ctx, 'mesh_oidc')
  const cookie = `${name}_${id}`
  const sealed = getCookie(c, cookie)
  const content = sealed === undefined ? null : await unseal(ctx.config.SESSION_SECRET, labelOf(id), sealed)
  if (content === null) throw new OidcFailure('attempt_unknown')
  const { seed, expiresAt, ...purpose } = sealedSchema.parse(JSON.parse(content))
  const secrets = secretsOf(id, seed)
  if (!isSameText(secrets.state, state)) throw new OidcFailure('state_invalid')
  deleteCookie(c, cookie, options)
  const now = ctx.now()
  // An expiry further in the future is only possible if the clock was ahead when the attempt began.
  if (expiresAt <= now || expiresAt > now + LIFETIME_MS) throw new OidcFailure('attempt_expired')
  // The count outlives the attempt itself.
  const { count } = await ctx.sessions.hit(`oidc:used:${hashToken(state)}`, LIFETIME_MS, now)
  if (count > 1) throw new OidcFailure('attempt_used')
  return { ...secrets, ...purpose }
}

function labelOf(id: string): string {
  return `oidc-attempt:${id}`
}
