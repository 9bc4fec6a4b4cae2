import type { Ctx } from '../context.ts'
import { AppError } from '../errors.ts'

type Attempt = {
  /** Clears the account's count and takes this attempt off the address's. */
  readonly succeed: () => Promise<void>
  /** The password was never checked: the attempt doesn't count. */
  readonly takeBackAndThrow: (error: unknown) => Promise<never>
}

/**
 * Counts a login against its account and its address before the password is looked at, so that attempts at the same
 * instant can't pass together. Throws `rate_limited` with the seconds to wait.
 */
export async function takeLoginAttempt(ctx: Ctx, username: string): Promise<Attempt> {
  const account = `login:account:${[...username.toLowerCase()].slice(0, 64).join('').toWellFormed()}`
  const address = ctx.ip === null ? null : `login:address:${addressKey(ctx.ip)}`
  await take(ctx, address)
  try {
    await take(ctx, account)
  } catch (error) {
    await takeBack(ctx, address)
    throw error
  }
  return {
    succeed: async () => {
      await ctx.sessions.forgive(account, 'all')
      await takeBack(ctx, address)
    },
    takeBackAndThrow: async (error) => {
      await ctx.sessions.forgive(account, 'one')
      await takeBack(ctx, address)
      throw error
    },
  }
}

async function takeBack(ctx: Ctx, key: string | null): Promise<void> {
  if (key !== null) await ctx.sessions.forgive(key, 'one')
}

async function take(ctx: Ctx, key: string | null): Promise<void> {
  if (key === null) return
  const now = ctx.now()
  const { count, resetAt } = await ctx.sessions.hit(key, ctx.config.LOGIN_WINDOW_SECONDS * 1000, now)
  if (count <= ctx.config.LOGIN_MAX_FAILURES) return
  // What was refused was no attempt at a password.
  await ctx.sessions.forgive(key, 'one')
  const retryAfter = Math.max(1, Math.ceil((resetAt - now) / 1000))
  throw new AppError('rate_limited', `Too many failed attempts; try again in ${retryAfter} s`, { retryAfter })
}

/** An IPv6 client owns a /64 at least, so its addresses count as one. */
export function addressKey(ip: string): string {
  if (!ip.includes(':')) return ip
  const [head = '', tail] = ip.split('%', 1).join('').toLowerCase().split('::')
  const groups = head.split(':').filter((group) => group !== '')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').filter((group) => group !== '').length
  const all = [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...(tail ?? '').split(':')]
  const network = all.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}
