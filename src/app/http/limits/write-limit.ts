import type { BucketSize } from './buckets.ts'
import type { Context, Next } from 'hono'
import { addressKey } from './address-key.ts'
import type { AppEnv, Ctx } from '../../base/context.ts'
import { AppError } from '../errors.ts'
import { said } from '../../words/words.ts'

/** Signing out is always possible. It only removes a session, and each session needed a sign-in, which is limited. */
const LOGOUT = '/api/auth/logout'
/** Sign-ins have their own limit, and their cookie does not identify the user who signs in. */
const LOGIN = '/api/auth/login'

/** Several people may be behind one address. */
const USERS_BEHIND_AN_ADDRESS = 5

/** For the token of one collector: up to 500 packets per delivery, and many deliveries in a row after an outage. */
const DELIVERIES: BucketSize = { most: 3000, everyMs: 20 }

type Share = { readonly key: string; readonly size: BucketSize }

/**
 * Counts a write request against its user and its address. A refused request changed nothing and does not count.
 * Deliveries of collectors have a bucket for each token. Throws `rate_limited`. Decision:
 * docs/decisions/limits-of-changes.md
 */
export async function limitWrites(c: Context<AppEnv>, next: Next): Promise<void> {
  const ctx = c.get('ctx')
  if (ctx.radio?.isHandedOver?.(c) === true) return next()
  const shares = sharesOf(ctx, c.req.path)
  await takeAll(ctx, shares)
  await next()
  if (c.res.status >= 400 && c.res.status < 500) await giveBack(ctx, shares)
}

function sharesOf({ viewer, ip, config }: Ctx, path: string): Share[] {
  if (path === LOGOUT) return []
  const most = config.WRITE_BURST
  const everyMs = 60_000 / config.WRITES_PER_MINUTE
  if (viewer?.credential.kind === 'token' && path.startsWith('/api/ingest')) {
    return [{ key: `deliveries:token:${viewer.credential.tokenId}`, size: DELIVERIES }]
  }
  const shares: Share[] = []
  if (viewer !== null && path !== LOGIN) shares.push({ key: `writes:user:${viewer.user.id}`, size: { most, everyMs } })
  if (ip !== null) {
    const size = { most: most * USERS_BEHIND_AN_ADDRESS, everyMs: everyMs / USERS_BEHIND_AN_ADDRESS }
    shares.push({ key: `writes:address:${addressKey(ip)}`, size })
  }
  return shares
}

async function takeAll(ctx: Ctx, shares: readonly Share[]): Promise<void> {
  for (const [index, { key, size }] of shares.entries()) {
    const waitMs = await ctx.buckets.take(key, size, ctx.now())
    if (waitMs === 0) continue
    await giveBack(ctx, shares.slice(0, index))
    const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
    throw new AppError('rate_limited', said('Too many changes; try again in {retryAfter} s', { retryAfter }), {
      retryAfter,
    })
  }
}

async function giveBack({ buckets }: Ctx, shares: readonly Share[]): Promise<void> {
  for (const { key, size } of shares) await buckets.giveBack(key, size)
}
