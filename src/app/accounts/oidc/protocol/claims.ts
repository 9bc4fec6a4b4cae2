import type { OidcReason } from '../failure.ts'
import { MAX_SUBJECT } from '../../../../shared/limits.ts'

export type Claims = Readonly<Record<string, unknown>>

/** The allowed difference between the clocks of provider and service. */
const LEEWAY_S = 60

/** A token cannot be older than the oldest possible attempt. */
const MAX_AGE_S = 600

export type Expected = {
  readonly issuer: string
  readonly clientId: string
  readonly nonce: string
  /** The accepted values of `at_hash`, if the token has one. */
  readonly atHashes: readonly unknown[]
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

/**
 * The invalid claim of an ID token; null when all are valid and `sub` is its subject. OpenID Connect Core 1.0, 3.1.3.7
 * and 3.1.3.8, with the optional checks; further audiences are accepted only in a token that was issued to this client.
 */
export function wrongClaim(claims: Claims, expected: Expected): OidcReason | null {
  const { iss, sub, azp, exp, iat, nbf, nonce, at_hash: atHash } = claims
  const now = expected.now / 1000
  if (iss !== expected.issuer) return 'claim_iss'
  if (!isSubject(sub)) return 'claim_sub'
  if (!isAudience(claims, expected.clientId)) return 'claim_aud'
  if (azp !== undefined && azp !== expected.clientId) return 'claim_azp'
  if (!isTime(exp) || exp + LEEWAY_S <= now) return 'claim_exp'
  if (!isTime(iat) || iat - LEEWAY_S > now || iat + MAX_AGE_S + LEEWAY_S < now) return 'claim_iat'
  if (nbf !== undefined && (!isTime(nbf) || nbf - LEEWAY_S > now)) return 'claim_nbf'
  if (nonce !== expected.nonce) return 'claim_nonce'
  if (atHash !== undefined && !expected.atHashes.includes(atHash)) return 'claim_at_hash'
  return null
}

/**
 * The claim at `path`, either as one name or as names separated by dots; undefined if there is none. Inherited
 * properties do not count.
 */
export function claimAt(claims: Claims, path: string): unknown {
  let found: unknown = claims
  for (const name of Object.hasOwn(claims, path) ? [path] : path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = Object.entries(found).find(([key]) => key === name)?.[1]
  }
  return found
}

/** Whether this is a valid `sub`. */
export function isSubject(sub: unknown): sub is string {
  // A database stores every lone surrogate as the same replacement character: two subjects would become one.
  return typeof sub === 'string' && sub !== '' && sub.length <= MAX_SUBJECT && !/[\p{Cc}\p{Cs}]/u.test(sub)
}

/** Whether `aud` names this client; others are allowed only if `azp` says that the token was issued to this one. */
export function isAudience({ aud, azp }: Claims, clientId: string): boolean {
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(clientId) || !audiences.every((audience) => typeof audience === 'string')) return false
  return azp === clientId || audiences.every((audience) => audience === clientId)
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Values of `amr` that mean more than a password: RFC 8176, section 2. */
const BEYOND_KNOWLEDGE: ReadonlySet<unknown> = new Set([
  'face',
  'fpt',
  'hwk',
  'iris',
  'mca',
  'mfa',
  'otp',
  'pop',
  'retina',
  'sc',
  'sms',
  'swk',
  'tel',
  'vbm',
])

/** The number of factors according to an ID token; null if it is missing or unreadable. */
export function factorsOf({ amr }: Claims): 1 | 2 | null {
  if (!Array.isArray(amr) || amr.length === 0) return null
  return amr.some((method) => BEYOND_KNOWLEDGE.has(method)) ? 2 : 1
}

/** When the user last authenticated at the provider, ms; null if that is missing from the ID token or unreadable. */
export function authenticationTime({ auth_time: time }: Claims): number | null {
  return isTime(time) && time > 0 && time < 1e11 ? Math.floor(time * 1000) : null
}
