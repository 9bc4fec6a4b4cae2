import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../../../base/context.ts'
import { describe } from '../../../http/describe.ts'
import { AppError } from '../../../http/errors.ts'
import { robotsHeaders } from '../../../http/security.ts'
import { demandEvents, STREAM_HEADERS } from '../stream.ts'
import { admitAnonymous, viewOfAnonymous } from '../../../accounts/access/shared.ts'

/**
 * Runs before the access rule and answers anonymous callers with their live events, while public access is on. A preview
 * has none. Throws `unsupported_on_this_runtime`, `rate_limited`.
 */
const openForAnonymous: MiddlewareHandler<AppEnv> = async (c, next) => {
  const ctx = c.get('ctx')
  const shown = ctx.preview === undefined ? await viewOfAnonymous(c, ctx) : null
  if (shown === null) return next()
  const events = demandEvents(ctx)
  if (events.elsewhere !== undefined) {
    throw new AppError('unsupported_on_this_runtime', 'Live events need an account on this runtime')
  }
  admitAnonymous(ctx)
  const headers = { ...STREAM_HEADERS, ...robotsHeaders(ctx.config) }
  if (c.req.method === 'HEAD') return c.body(null, 200, headers)
  const { openAnonymousStream } = await import('./event-stream.ts')
  return c.body(await openAnonymousStream(ctx, events, c.req.header('last-event-id')), 200, headers)
}

export const sharedEvents = describe(openForAnonymous, { shared: 'any', errors: ['rate_limited'] })
