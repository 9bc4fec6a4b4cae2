import * as z from 'zod'
import type { OidcReason } from '../failure.ts'
import type { EndedSession } from '../provider.ts'
import { decodeJson } from './keys.ts'
import { type Claims, isAudience, isSubject } from './claims.ts'

/** The allowed difference between the clocks of provider and service. */
const LEEWAY_S = 60

/** Somebody may have recorded an older token. */
const MAX_AGE_S = 600

const MAX_TOKEN_LENGTH = 16_384

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

const issuerSchema = z.object({ iss: z.string() })
const namedSchema = z.string().min(1).max(255)

/** The issuer that a token names, unverified; null for an invalid token. */
export function issuerIn(token: string): string | null {
  if (token.length > MAX_TOKEN_LENGTH) return null
  return issuerSchema.safeParse(decodeJson(token.split('.')[1] ?? '')).data?.iss ?? null
}

/**
 * What a logout token with a valid signature ends, or which of its claims is wrong. OpenID Connect Back-Channel Logout
 * 1.0, 2.4 and 2.6. A provider that follows an earlier draft omits `exp`. Then only `iat` limits the token's validity.
 */
export function readLogout(
  claims: Claims,
  expected: { readonly issuer: string; readonly clientId: string; readonly now: number },
): EndedSession | OidcReason {
  const { iss, iat, exp, jti, sid, sub, nonce, events } = claims
  const now = expected.now / 1000
  if (iss !== expected.issuer) return 'claim_iss'
  if (!isAudience(claims, expected.clientId)) return 'claim_aud'
  if (!isTime(iat) || iat - LEEWAY_S > now || iat + MAX_AGE_S + LEEWAY_S < now) return 'claim_iat'
  if (exp !== undefined && (!isTime(exp) || exp + LEEWAY_S <= now)) return 'claim_exp'
  if (nonce !== undefined) return 'claim_nonce'
  if (!isLogoutEvent(events)) return 'claim_events'
  const id = namedSchema.safeParse(jti).data
  if (id === undefined) return 'claim_jti'
  const session = sid === undefined ? null : namedSchema.safeParse(sid).data
  if (session === undefined || (sub === undefined && session === null)) return 'claim_sid'
  if (sub !== undefined && !isSubject(sub)) return 'claim_sub'
  return { id, sid: session, subject: sub ?? null }
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isLogoutEvent(events: unknown): boolean {
  if (typeof events !== 'object' || events === null || !Object.hasOwn(events, EVENT)) return false
  const event: unknown = Object.entries(events).find(([name]) => name === EVENT)?.[1]
  return typeof event === 'object' && event !== null && !Array.isArray(event)
}
