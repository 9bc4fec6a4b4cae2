import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../../../base/context.ts'
import { describe } from '../../../http/describe.ts'
import { robotsHeaders } from '../../../http/security.ts'
import { demandEvents, STREAM_HEADERS } from '../stream.ts'
import { admitStranger, viewOfStranger } from '../../../accounts/access/shared.ts'
import { openStrangerStream } from './event-stream.ts'

/**
 * Runs before the access rule and answers anonymous callers with their live events, while public access is on. A preview
 * has none. Throws `unsupported_on_this_runtime`, `rate_limited`.
 */
const openForStrangers: MiddlewareHandler<AppEnv> = async (c, next) => {
  const ctx = c.get('ctx')
  const shown = ctx.preview === undefined ? await viewOfStranger(c, ctx) : null
  if (shown === null) return next()
  const events = demandEvents(ctx)
  admitStranger(ctx)
  const headers = { ...STREAM_HEADERS, ...robotsHeaders(ctx.config) }
  if (c.req.method === 'HEAD') return c.body(null, 200, headers)
  return c.body(await openStrangerStream(ctx, events, c.req.header('last-event-id')), 200, headers)
}

export const sharedEvents = describe(openForStrangers, { shared: 'any', errors: ['rate_limited'] })
