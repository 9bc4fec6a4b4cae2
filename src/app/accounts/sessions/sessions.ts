import type { StoredSession } from './store.ts'
import { and, eq, sql } from 'drizzle-orm'
import type { Context } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import * as z from 'zod'
import { alertDestinations, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { nextEpoch, otherOwner } from '../users/users.ts'
import { forgetEnd, hasEnded, knownUse, listEnded, noteEnd, noteUse } from './last-use.ts'
import { ownCookie } from './cookies.ts'
import { hashPresentedToken, hashToken, randomId, randomToken, signToken } from './session-token.ts'
import { isFuture, MINUTE_MS } from '../../../shared/time.ts'
import { timeField } from '../../http/fields.ts'

/** How often the use of a session is written to the store, or every twentieth of a shorter idle timeout. */
const TOUCH_INTERVAL_MS = 5 * MINUTE_MS

/** By how much the clock of another instance may be ahead. */
const MAX_AHEAD_MS = 10 * MINUTE_MS

/** The maximum per user. Another sign-in ends the least recently used session. */
const MAX_SESSIONS = 100

export const sessionSchema = z
  .object({
    id: z.int(),
    createdAt: timeField,
    lastSeenAt: timeField,
    ip: z.string().nullable(),
    userAgent: z.string().nullable(),
    current: z.boolean().describe('Whether it is the session of this request'),
  })
  .meta({ id: 'Session', description: 'A signed-in browser' })

/**
 * A new session under a new token, for a user whose credentials were checked at `user.epoch`. Sets the cookie; returns
 * the hash of the token.
 */
export async function startSession(
  c: Context,
  ctx: Ctx,
  user: {
    id: number
    epoch: number
    oidcIssuer: string | null
    factors: number | null
    /** When the replaced session began. The absolute timeout counts from then. */
    createdAt?: number
    /** When a provider authenticated the user; default: now. */
    authenticatedAt?: number | null
    /** When a second factor of this service was proved; default: never. */
    factorAt?: number | null
  },
): Promise<string> {
  await endPresentedSession(c, ctx)
  const token = randomToken()
  const now = ctx.now()
  const all = await ctx.sessions.insert({
    id: randomId(),
    tokenHash: hashToken(token),
    userId: user.id,
    epoch: user.epoch,
    createdAt: user.createdAt ?? now,
    lastSeenAt: now,
    expiresAt: storedExpiry(ctx, now, user.createdAt ?? now),
    ip: ctx.ip,
    userAgent: c.req.header('user-agent')?.slice(0, 256) ?? null,
    oidcIssuer: user.oidcIssuer,
    authenticatedAt: Math.min(user.authenticatedAt ?? now, now),
    factors: user.factors,
    factorAt: user.factorAt ?? null,
  })
  noteUse(ctx.sessions, hashToken(token), now)
  await endSurplus(ctx, user.id, { newest: hashToken(token), all })
  const { name, options } = ownCookie(c, ctx, 'mesh_session')
  setCookie(c, name, signToken(token, ctx.config.SESSION_SECRET), {
    ...options,
    maxAge: Math.min(ctx.config.SESSION_ABSOLUTE_TIMEOUT_SECONDS, 400 * 86_400),
  })
  return hashToken(token)
}

async function endSurplus(
  ctx: Ctx,
  userId: number,
  { newest, all }: { readonly newest: string; readonly all: readonly StoredSession[] },
): Promise<void> {
  const { sessions, log } = ctx
  // The new session is excluded by its hash, not by age: others may have been seen in the same millisecond, or by a
  // clock that was ahead.
  const others = liveOf(ctx, all).filter(({ tokenHash }) => tokenHash !== newest)
  const surplus = others.slice(MAX_SESSIONS - 1)
  for (const { tokenHash } of surplus) await sessions.remove(tokenHash)
  if (surplus.length > 0) log.info('Sessions ended: the user has too many', { userId, sessions: surplus.length })
}

/** The live session that the request's cookie names; null for a forged, altered or expired one. */
export async function findSession(c: Context, ctx: Ctx): Promise<StoredSession | null> {
  const tokenHash = presentedHash(c, ctx)
  return tokenHash === null ? null : findLive(ctx, tokenHash)
}

/** As `findSession`, for a session that `read` gets from the database together with other data. */
export async function findSessionWith<T extends { readonly session: StoredSession }>(
  c: Context,
  ctx: Ctx,
  read: (tokenHash: string) => Promise<T | undefined>,
): Promise<T | null> {
  const tokenHash = presentedHash(c, ctx)
  if (tokenHash === null || hasEnded(ctx.sessions, tokenHash)) return null
  const found = await read(tokenHash)
  return found !== undefined && found.session.expiresAt > ctx.now() && isLive(ctx, found.session) ? found : null
}

/** The session with this token hash, within both of its timeouts. Does not count as a use. */
export async function findLive(ctx: Ctx, tokenHash: string): Promise<StoredSession | null> {
  return hasEnded(ctx.sessions, tokenHash) ? null : ifLive(ctx, await ctx.sessions.find(tokenHash, ctx.now()))
}

/** A session that was read from the store, unless it has ended. */
export function ifLive(ctx: Ctx, session: StoredSession | null | undefined): StoredSession | null {
  if (session == null || hasEnded(ctx.sessions, session.tokenHash) || session.expiresAt <= ctx.now()) return null
  return isLive(ctx, session) ? session : null
}

function isLive(ctx: Ctx, session: StoredSession): boolean {
  // Another process may have seen a use that it has not written yet.
  const lastUse = knownUse(ctx.sessions, session) ?? session.lastSeenAt + touchInterval(ctx)
  const now = ctx.now()
  // A session must not live longer because the clock was ahead and has been corrected.
  if (isFuture(Math.max(session.createdAt, session.lastSeenAt), now, MAX_AHEAD_MS)) return false
  return now < lastUse + idleTimeout(ctx) && now < absoluteEnd(ctx, session.createdAt)
}

/** The live sessions of a user, the most recently used first. */
async function liveSessions(ctx: Ctx, userId: number): Promise<StoredSession[]> {
  return liveOf(ctx, await ctx.sessions.list(userId, ctx.now()))
}

function liveOf(ctx: Ctx, all: readonly StoredSession[]): StoredSession[] {
  return all
    .filter((session) => isLive(ctx, session) && !hasEnded(ctx.sessions, session.tokenHash))
    .map((session) => ({ ...session, lastSeenAt: knownUse(ctx.sessions, session) ?? session.lastSeenAt }))
    .toSorted((a, b) => b.lastSeenAt - a.lastSeenAt || b.id - a.id)
}

function presentedHash(c: Context, ctx: Ctx): string | null {
  const cookies = c.req.header('cookie')
  if (cookies === undefined) return null
  return hashPresentedToken(cookies, ownCookie(c, ctx, 'mesh_session').name, ctx.config.SESSION_SECRET)
}

/**
 * Extends the idle timeout. This process remembers each use at once, but writes it to the store only from time to time.
 * Decision: docs/decisions/short-decisions.md#an-open-event-stream-does-not-keep-a-session-alive
 */
export async function touchSession(ctx: Ctx, session: StoredSession): Promise<void> {
  const now = ctx.now()
  noteUse(ctx.sessions, session.tokenHash, now)
  if (now - session.lastSeenAt < touchInterval(ctx)) return
  await ctx.sessions.extend(session.tokenHash, now, storedExpiry(ctx, now, session.createdAt))
}

function touchInterval(ctx: Ctx): number {
  return Math.min(TOUCH_INTERVAL_MS, idleTimeout(ctx) / 20)
}

function idleTimeout(ctx: Ctx): number {
  return ctx.config.SESSION_IDLE_TIMEOUT_SECONDS * 1000
}

function absoluteEnd(ctx: Ctx, createdAt: number): number {
  return createdAt + ctx.config.SESSION_ABSOLUTE_TIMEOUT_SECONDS * 1000
}

/** How long the store keeps a session: until its timeout after the latest use that may not be written yet. */
function storedExpiry(ctx: Ctx, now: number, createdAt: number): number {
  return Math.min(now + touchInterval(ctx) + idleTimeout(ctx), absoluteEnd(ctx, createdAt))
}

async function endPresentedSession(c: Context, ctx: Ctx): Promise<void> {
  const tokenHash = presentedHash(c, ctx)
  if (tokenHash !== null) await ctx.sessions.remove(tokenHash)
}

/**
 * Ends the session of the request, if there is one, and clears the cookie. While nothing can be written the session
 * still ends in this process, and in the store as soon as writing works.
 */
export async function signOut(c: Context, ctx: Ctx): Promise<void> {
  const credential = ctx.viewer?.credential
  if (credential?.kind === 'session') {
    const { tokenHash } = credential.session
    ctx.disk?.makeRoom()
    noteEnd(ctx.sessions, tokenHash)
    try {
      if (await ctx.sessions.remove(tokenHash)) {
        await ctx.store.atomic([audit(ctx, 'logout', {}), ...forgetBrowser(ctx, credential.session)])
      }
      forgetEnd(ctx.sessions, tokenHash)
    } catch (error) {
      ctx.log.error('The store still contains a session that has ended: it will be removed later', { error })
    }
  }
  if (c.req.header('cookie') === undefined) return
  const { name, options } = ownCookie(c, ctx, 'mesh_session')
  deleteCookie(c, name, options)
}

/**
 * Statements that stop alerts to the browser of a session, because the page that unsubscribes it may already be closed.
 */
function forgetBrowser(ctx: Ctx, { userId, createdAt }: StoredSession): Statement[] {
  const made = and(
    eq(alertDestinations.ownerId, userId),
    eq(alertDestinations.kind, 'web_push'),
    eq(alertDestinations.newsSession, createdAt),
  )
  const after = { kind: 'web_push', before: 'the browser that signed out', after: null }
  return [
    audit(ctx, 'alert_destination_updated', after, {
      onlyIf: sql`exists (select 1 from ${alertDestinations} where ${made})`,
    }),
    ctx.store.db.delete(alertDestinations).where(made),
  ]
}

/** Removes sessions that ended while the store could not be written, and expired ones. */
export async function sweepSessions({ sessions, now }: Pick<Ctx, 'sessions' | 'now'>): Promise<void> {
  for (const tokenHash of listEnded(sessions)) {
    await sessions.remove(tokenHash)
    forgetEnd(sessions, tokenHash)
  }
  await sessions.sweep(now())
}

/** The active sessions of a user, the most recently used first. Throws `user_not_found`. */
export async function listSessions(ctx: SignedInCtx, userId: number): Promise<z.infer<typeof sessionSchema>[]> {
  const { credential } = ctx.viewer
  const own = credential.kind === 'session' ? credential.session.id : null
  return (await openSessions(ctx, userId)).map(({ id, createdAt, lastSeenAt, ip, userAgent }) => ({
    id,
    createdAt,
    lastSeenAt,
    ip,
    userAgent,
    current: id === own,
  }))
}

async function openSessions(ctx: Ctx, userId: number): Promise<StoredSession[]> {
  const user = await ctx.store.db.select({ epoch: users.sessionEpoch }).from(users).where(eq(users.id, userId)).get()
  if (user === undefined) throw new AppError('user_not_found')
  return (await liveSessions(ctx, userId)).filter(({ epoch }) => epoch === user.epoch)
}

/** Ends one session of a user. Throws `user_not_found`, `not_found`. */
export async function revokeSession(ctx: SignedInCtx, userId: number, id: number): Promise<void> {
  const session = (await openSessions(ctx, userId)).find((open) => open.id === id)
  if (session === undefined || !(await ctx.sessions.remove(session.tokenHash))) throw new AppError('not_found')
  await ctx.store.atomic([audit(ctx, 'session_revoked', { ...(await otherOwner(ctx, userId)), sessionId: id })])
}

/** Ends all of the viewer's sessions but this one. */
export async function revokeOtherSessions(ctx: SignedInCtx): Promise<void> {
  const { credential } = ctx.viewer
  const except = credential.kind === 'session' ? credential.session : null
  const others = (await openSessions(ctx, ctx.viewer.user.id)).filter(({ id }) => id !== except?.id)
  if (others.length === 0) return
  if ((await ctx.sessions.removeForUser(ctx.viewer.user.id, except?.tokenHash)) === 0) return
  await ctx.store.atomic([audit(ctx, 'session_revoked', { sessions: others.length })])
}

/** Ends every session of a user, including one that is just beginning. Throws `user_not_found`. */
export async function revokeSessions(ctx: SignedInCtx, userId: number): Promise<void> {
  const open = await openSessions(ctx, userId)
  if (open.length === 0) return
  const owner = await otherOwner(ctx, userId)
  await ctx.store.atomic([
    ctx.store.db.update(users).set({ sessionEpoch: nextEpoch }).where(eq(users.id, userId)),
    audit(ctx, 'session_revoked', { ...owner, sessions: open.length }),
  ])
  await ctx.sessions.removeForUser(userId)
}
