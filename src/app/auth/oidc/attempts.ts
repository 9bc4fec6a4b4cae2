import { hmac } from '@oslojs/crypto/hmac'
import { SHA256 } from '@oslojs/crypto/sha2'
import { constantTimeEqual } from '@oslojs/crypto/subtle'
import { encodeBase64urlNoPadding } from '@oslojs/encoding'
import { eq, lte, sql } from 'drizzle-orm'
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { oidcAttempts } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import type { AttemptSecrets, Ctx } from '../../context.ts'
import { addressKey } from '../local/login-limiter.ts'
import { OidcFailure } from './failure.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'
import { isSecure } from '../sessions/sessions.ts'

const LIFETIME_MS = 10 * 60_000

/** Unfinished attempts of one browser, of one address, and in all: beyond that the oldest give way. */
const MOST_IN_BROWSER = 10
const MOST_OF_ADDRESS = 200
const MOST = 1000

const utf8 = new TextEncoder()

/** A sign-in under way: what the provider is sent and must send back. */
export type Attempt = AttemptSecrets & { readonly issuer: string; readonly returnTo: string }

/**
 * Everything secret about an attempt follows from one random value, which only the browser keeps, in the cookie that
 * `id` names. The row holds a hash of the state, which opens nothing.
 */
function secretsOf(id: string, secret: string): AttemptSecrets {
  const derive = (purpose: string) =>
    encodeBase64urlNoPadding(hmac(SHA256, utf8.encode(secret), utf8.encode(`oidc:${purpose}:${id}`)))
  return { state: `${id}.${derive('state')}`, nonce: derive('nonce'), verifier: derive('verifier') }
}

export type NewAttempt = { readonly id: string; readonly secret: string; readonly secrets: AttemptSecrets }

/** Secrets for a new attempt; nothing is stored yet. */
export function newAttempt(): NewAttempt {
  const id = encodeBase64urlNoPadding(crypto.getRandomValues(new Uint8Array(12)))
  const secret = randomToken()
  return { id, secret, secrets: secretsOf(id, secret) }
}

/** Stores an attempt for ten minutes and binds it to the browser by a cookie of its own. */
export async function storeAttempt(
  c: Context,
  ctx: Ctx,
  attempt: NewAttempt,
  purpose: { readonly issuer: string; readonly returnTo: string },
): Promise<void> {
  const { db } = ctx.store
  const address = ctx.ip === null ? 'none' : addressKey(ctx.ip)
  const now = ctx.now()
  const stateHash = hashToken(attempt.secrets.state)
  await ctx.store.atomic([
    db.delete(oidcAttempts).where(lte(oidcAttempts.expiresAt, now)),
    db.insert(oidcAttempts).values({ ...purpose, stateHash, address, expiresAt: now + LIFETIME_MS }),
    db.delete(oidcAttempts).where(beyond(MOST_OF_ADDRESS, address)),
    db.delete(oidcAttempts).where(beyond(MOST, null)),
  ])
  const options = cookieOptions(c, ctx)
  const prefix = cookiePrefix(options.secure)
  // A browser sends the cookie it got first first: RFC 6265, section 5.4.
  const waiting = Object.keys(getCookie(c)).filter((name) => name.startsWith(prefix))
  for (const name of waiting.slice(0, Math.max(0, waiting.length - MOST_IN_BROWSER + 1))) deleteCookie(c, name, options)
  setCookie(c, `${prefix}${attempt.id}`, attempt.secret, { ...options, maxAge: LIFETIME_MS / 1000 })
}

/** The attempts that are older than the `most` newest ones, of an address or of all. */
function beyond(most: number, address: string | null) {
  const of = address === null ? sql`` : sql` where ${oidcAttempts.address} = ${address}`
  return sql`${oidcAttempts.stateHash} in (select ${oidcAttempts.stateHash} from ${oidcAttempts}${of}
    order by ${oidcAttempts.expiresAt} desc, rowid desc limit -1 offset ${most})`
}

/**
 * Takes the attempt that a callback's `state` and the browser's cookie agree on: it is deleted before this answers.
 * Throws an `OidcFailure`.
 */
export async function takeAttempt(c: Context, ctx: Ctx, state: string | undefined): Promise<Attempt> {
  const id = /^([\w-]{16})\.[\w-]{43}$/.exec(state ?? '')?.[1]
  if (id === undefined || state === undefined) throw new OidcFailure('state_invalid')
  const options = cookieOptions(c, ctx)
  const cookie = `${cookiePrefix(options.secure)}${id}`
  const secret = getCookie(c, cookie)
  if (secret === undefined || !/^[\w-]{43}$/.test(secret)) throw new OidcFailure('attempt_unknown')
  const secrets = secretsOf(id, secret)
  if (!constantTimeEqual(utf8.encode(secrets.state), utf8.encode(state))) throw new OidcFailure('state_invalid')
  const row = await ctx.store.db
    .delete(oidcAttempts)
    .where(eq(oidcAttempts.stateHash, hashToken(secrets.state)))
    .returning()
    .get()
  deleteCookie(c, cookie, options)
  if (row === undefined || row.expiresAt <= ctx.now()) throw new OidcFailure('attempt_expired')
  return { ...secrets, issuer: row.issuer, returnTo: row.returnTo }
}

/** Drops the attempts that nobody finished in time. */
export async function sweepAttempts(store: Store, now: number): Promise<void> {
  await store.db.delete(oidcAttempts).where(lte(oidcAttempts.expiresAt, now)).run()
}

function cookiePrefix(secure: boolean): string {
  return secure ? '__Host-mesh_oidc_' : 'mesh_oidc_'
}

// Lax: the provider sends the browser back by a top-level GET from another site.
function cookieOptions(c: Context, ctx: Ctx) {
  return { path: '/', httpOnly: true, sameSite: 'Lax', secure: isSecure(c, ctx) } as const
}
