import type { Context } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import * as z from 'zod'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx, StoredSession } from '../../context.ts'
import { hashPresentedToken, hashToken, randomId, randomToken, signToken } from './session-token.ts'

const COOKIE = 'mesh_session'
const SECURE_COOKIE = `__Host-${COOKIE}`

/** Sliding expiry reaches the store at most so often for a session. */
const TOUCH_INTERVAL_MS = 5 * 60_000

/** Of one user. A sign-in beyond them ends those that were not used for longest. */
const MOST_SESSIONS = 100

export const sessionSchema = z.object({
  id: z.int(),
  createdAt: z.int(),
  lastSeenAt: z.int(),
  ip: z.string().nullable(),
  userAgent: z.string().nullable(),
  current: z.boolean(),
})

/** Whether this request's session cookie is, or would be, a Secure one. */
export function isSecure(c: Context, ctx: Ctx): boolean {
  const { COOKIE_SECURE } = ctx.config
  return COOKIE_SECURE === 'auto' ? ctx.origin(c).startsWith('https:') : COOKIE_SECURE === 'true'
}

/** A new session under a new token, for a user whose credentials were checked at `user.epoch`. Sets the cookie. */
export async function startSession(
  c: Context,
  ctx: Ctx,
  user: { id: number; epoch: number; oidcIssuer: string | null },
): Promise<void> {
  await endPresentedSession(c, ctx)
  const token = randomToken()
  const now = ctx.now()
  await ctx.sessions.insert({
    id: randomId(),
    tokenHash: hashToken(token),
    userId: user.id,
    epoch: user.epoch,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: expiry(ctx, now, now),
    ip: ctx.ip,
    userAgent: c.req.header('user-agent')?.slice(0, 256) ?? null,
    oidcIssuer: user.oidcIssuer,
  })
  await endSurplus(ctx, user.id, hashToken(token))
  const secure = isSecure(c, ctx)
  setCookie(c, secure ? SECURE_COOKIE : COOKIE, signToken(token, ctx.config.SESSION_SECRET), {
    httpOnly: true,
    sameSite: 'Lax',
    path: '/',
    secure,
    maxAge: Math.min(ctx.config.SESSION_ABSOLUTE_TIMEOUT_SECONDS, 400 * 86_400),
  })
}

async function endSurplus({ sessions, now, log }: Ctx, userId: number, newest: string): Promise<void> {
  // By name, not by age: others may have been seen in the same millisecond, or by a clock that was ahead.
  const others = (await sessions.list(userId, now())).filter(({ tokenHash }) => tokenHash !== newest)
  const surplus = others.slice(MOST_SESSIONS - 1)
  for (const { tokenHash } of surplus) await sessions.remove(tokenHash)
  if (surplus.length > 0) log.info('Sessions ended: the user has too many', { userId, sessions: surplus.length })
}

/** The live session that the request's cookie names. A planted, tampered or old one is nobody's. */
export async function findSession(c: Context, ctx: Ctx): Promise<StoredSession | null> {
  const tokenHash = presentedHash(c, ctx)
  if (tokenHash === null) return null
  const session = await ctx.sessions.find(tokenHash, ctx.now())
  return session !== null && ctx.now() < absoluteEnd(ctx, session.createdAt) ? session : null
}

function presentedHash(c: Context, ctx: Ctx): string | null {
  const cookies = c.req.header('cookie')
  if (cookies === undefined) return null
  return hashPresentedToken(cookies, isSecure(c, ctx) ? SECURE_COOKIE : COOKIE, ctx.config.SESSION_SECRET)
}

/** Pushes the idle timeout on, at most every five minutes. */
export async function touchSession(ctx: Ctx, session: StoredSession): Promise<void> {
  const now = ctx.now()
  if (now - session.lastSeenAt < Math.min(TOUCH_INTERVAL_MS, ctx.config.SESSION_IDLE_TIMEOUT_SECONDS * 500)) return
  await ctx.sessions.extend(session.tokenHash, now, expiry(ctx, now, session.createdAt))
}

function absoluteEnd(ctx: Ctx, createdAt: number): number {
  return createdAt + ctx.config.SESSION_ABSOLUTE_TIMEOUT_SECONDS * 1000
}

function expiry(ctx: Ctx, now: number, createdAt: number): number {
  return Math.min(now + ctx.config.SESSION_IDLE_TIMEOUT_SECONDS * 1000, absoluteEnd(ctx, createdAt))
}

async function endPresentedSession(c: Context, ctx: Ctx): Promise<void> {
  const tokenHash = presentedHash(c, ctx)
  if (tokenHash !== null) await ctx.sessions.remove(tokenHash)
}

/** Ends the session of the request, if there is one, and takes the cookie back. */
export async function signOut(c: Context, ctx: Ctx): Promise<void> {
  const credential = ctx.viewer?.credential
  if (credential?.kind === 'session') {
    if (await ctx.sessions.remove(credential.session.tokenHash)) await ctx.store.atomic([audit(ctx, 'logout', {})])
  }
  if (c.req.header('cookie') === undefined) return
  const secure = isSecure(c, ctx)
  deleteCookie(c, secure ? SECURE_COOKIE : COOKIE, { path: '/', secure, httpOnly: true, sameSite: 'Lax' })
}

export async function listSessions(ctx: SignedInCtx): Promise<z.infer<typeof sessionSchema>[]> {
  const { credential } = ctx.viewer
  const own = credential.kind === 'session' ? credential.session : null
  const all = await ctx.sessions.list(ctx.viewer.user.id, ctx.now())
  const sessions = all.filter(({ epoch }) => own === null || epoch === own.epoch)
  return sessions.map(({ id, createdAt, lastSeenAt, ip, userAgent }) => ({
    id,
    createdAt,
    lastSeenAt,
    ip,
    userAgent,
    current: id === own?.id,
  }))
}

/** Ends one of the viewer's own sessions; false when there is none with this id. */
export async function revokeSession(ctx: SignedInCtx, id: number): Promise<boolean> {
  const session = (await ctx.sessions.list(ctx.viewer.user.id, ctx.now())).find((own) => own.id === id)
  if (session === undefined || !(await ctx.sessions.remove(session.tokenHash))) return false
  await ctx.store.atomic([audit(ctx, 'session_revoked', { sessionId: id })])
  return true
}

/** Ends all of the viewer's sessions but this one. */
export async function revokeOtherSessions(ctx: SignedInCtx): Promise<void> {
  const { credential } = ctx.viewer
  const except = credential.kind === 'session' ? credential.session : null
  const others = (await ctx.sessions.list(ctx.viewer.user.id, ctx.now())).filter(({ id }) => id !== except?.id)
  if (others.length === 0) return
  if ((await ctx.sessions.removeForUser(ctx.viewer.user.id, except?.tokenHash)) === 0) return
  await ctx.store.atomic([audit(ctx, 'session_revoked', { sessions: others.length })])
}
