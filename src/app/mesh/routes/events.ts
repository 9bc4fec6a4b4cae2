import { Hono } from 'hono'
import * as z from 'zod'
import { requireAuth } from '../../accounts/access/require.ts'
import { sharedEvents } from '../live/anonymous/shared-events.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { flagQuery, validate } from '../../http/validate.ts'
import { demandEvents, STREAM_HEADERS } from '../live/stream.ts'

export const eventRoutes = new Hono<AppEnv>().get(
  '/',
  sharedEvents,
  requireAuth,
  answers(
    'Live events, as server-sent events. Kinds: node, message, delivery, traceroute, neighbors, link and configuration, each only for users who may read it, and alert, for users whose alerts have changed. A node event has the changed fields of the node in `changes`, or `isDeleted`, or neither when you should load it; a message event has the message in `message`, and, for users who may read nodes, the name of its sender in `senderName`, unless `nameAltered` of the sender; a delivery event has `deliveryState`, `routingError` and `notice`; a traceroute event has the `id` of the traceroute that was added or has changed; a neighbors event has the node that reported its neighbours. `reset` says that events are missing, `access` that your permissions have changed. Last-Event-ID resumes a stream. While public access is on, anonymous callers get what it shows of node and message; their stream ends when public access changes',
    { 200: { mediaType: 'text/event-stream' } },
    ['unsupported_on_this_runtime', 'rate_limited'],
  ),
  validate(
    'query',
    z.object({
      heard: flagQuery
        .default(true)
        .describe(
          'false: without node events that only report how a node was heard, its position and its measurements',
        ),
      brief: flagQuery
        .default(false)
        .describe(
          'true: node events have only `nodeNum` beside `changes`, message events only `senderName` beside `message`',
        ),
      packets: flagQuery
        .default(false)
        .describe(
          'true: node events have `packets`, for users who may read info: who heard the packets (`receiver`), over how many hops, and whether by a broker',
        ),
    }),
  ),
  async (c) => {
    const { ctx } = c.var
    const { elsewhere } = demandEvents(ctx)
    if (c.req.method === 'HEAD') return c.body(null, 200, STREAM_HEADERS)
    if (elsewhere !== undefined) return elsewhere.open(c.req.raw)
    const { openEventStream } = await import('../live/event-stream.ts')
    const stream = openEventStream(ctx, c.req.header('last-event-id'), c.req.valid('query'))
    return c.body(stream, 200, STREAM_HEADERS)
  },
)
