import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import * as z from 'zod'
import type { Ctx } from '../../base/context.ts'
import { findUserByName } from '../users/users.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { randomToken } from './session-token.ts'
import { ownCookie } from './cookies.ts'
import type { KnownBrowser } from '../passwords/login-limiter.ts'

const LABEL = 'known-browser'

/** Counted from the latest sign-in. */
const LIFETIME_S = 180 * 86_400

/** The maximum number of accounts for which one browser is known: the latest ones. */
const MAX_USERS = 10

const contentSchema = z.strictObject({ nonce: z.string(), userIds: z.array(z.int()), expiresAt: z.int() })
type Content = z.infer<typeof contentSchema>

/**
 * Returns the request's browser if it is known for the account with this name; null if nobody signed in to it there, or
 * too long ago. The cookie is one of OWASP's *device cookies*. Decision: docs/decisions/known-browsers.md
 */
export async function findKnownBrowser(c: Context, ctx: Ctx, username: string): Promise<KnownBrowser | null> {
  const content = await presented(c, ctx)
  if (content === null) return null
  const user = await findUserByName(ctx.store, username)
  return user === null ? null : knownOf(content, user.id)
}

/** As `findKnownBrowser`, about the user with this ID. */
export async function findKnownBrowserOf(c: Context, ctx: Ctx, userId: number): Promise<KnownBrowser | null> {
  const content = await presented(c, ctx)
  return content === null ? null : knownOf(content, userId)
}

function knownOf({ userIds, nonce }: Content, userId: number): KnownBrowser | null {
  return userIds.includes(userId) ? { userId, nonce } : null
}

/** The users who have signed in in the request's browser. Takes the same time for every request. */
export async function knownUsers(c: Context, ctx: Ctx): Promise<readonly number[]> {
  return (await presented(c, ctx))?.userIds ?? []
}

/** Marks the browser as one in which this user has signed in. Sets the cookie. */
export async function rememberBrowser(c: Context, ctx: Ctx, userId: number): Promise<void> {
  const before = await presented(c, ctx)
  const content: Content = {
    nonce: before?.nonce ?? randomToken(),
    userIds: [userId, ...(before?.userIds ?? []).filter((id) => id !== userId)].slice(0, MAX_USERS),
    expiresAt: ctx.now() + LIFETIME_S * 1000,
  }
  const { name, options } = ownCookie(c, ctx, 'mesh_browser')
  setCookie(c, name, await seal(ctx.config.SESSION_SECRET, LABEL, JSON.stringify(content)), {
    ...options,
    maxAge: LIFETIME_S,
  })
}

async function presented(c: Context, ctx: Ctx): Promise<Content | null> {
  const sealed = getCookie(c, ownCookie(c, ctx, 'mesh_browser').name)
  const text = sealed === undefined ? null : await unseal(ctx.config.SESSION_SECRET, LABEL, sealed)
  if (text === null) return null
  const content = contentSchema.parse(JSON.parse(text))
  const left = content.expiresAt - ctx.now()
  // A longer time is impossible unless the clock was ahead when the cookie was set.
  return left > 0 && left <= LIFETIME_S * 1000 ? content : null
}
