import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answerBody, hashedBody } from '../../http/compression.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { whereTheRadioIs } from '../../http/radio-process.ts'
import { flagQuery, idParam, idSchema, integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { sharedList } from '../../accounts/access/shared.ts'
import { readTimely } from '../downlink/timely.ts'
import { mentionsWaiting } from '../messages/messages.ts'
import { listTraceroutesShown, traceroutesAsked, traceroutesForm } from '../topology/anonymous.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { listTraceroutes, ORIGINS, traceroutePageSchema, tracerouteSchema } from '../topology/traceroutes.ts'
import { directAnswersSchema, listDirectAnswers } from '../sending/direct-range.ts'
import { newTracerouteSchema, requestTraceroute } from '../sending/traceroute.ts'

export const tracerouteRoutes = new Hono<AppEnv>()
  .get(
    '/',
    sharedList('info', traceroutesAsked, traceroutesForm, listTraceroutesShown),
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('Traceroutes, newest first. With an ETag', { 200: traceroutePageSchema, 304: null }),
    validate(
      'query',
      z.object({
        limit: integerQuery(1, 500).default(100).describe('Maximum number of entries in the response'),
        before: idSchema.optional().describe('ID of a traceroute: returns earlier ones'),
        node: nodeNumSchema.optional().describe('Node number or !hex of one of its ends'),
        with: nodeNumSchema.optional().describe('Node number or !hex of the other end'),
        origin: z.enum(ORIGINS).optional().describe('own: requested by this service; overheard: by others'),
        since: timeQuery.optional().describe('Requested at this time or later'),
        until: timeQuery.optional().describe('Requested before this time'),
        answered: flagQuery.optional().describe('true: with a reply; false: without one'),
      }),
    ),
    async (c) => {
      const { ctx } = c.var
      const page = await readTimely(ctx, () => listTraceroutes(ctx, c.req.valid('query')), mentionsWaiting)
      return answerBody(c, c.var.ctx.compressor, await hashedBody(page))
    },
  )
  .post(
    '/',
    requirePermission('info', 'write'),
    answers('Send a traceroute to a node', { 202: z.object({ traceroute: tracerouteSchema }) }, [
      'queue_full',
      'unsupported_on_this_runtime',
      'radio_unavailable',
    ]),
    validate('json', newTracerouteSchema),
    whereTheRadioIs,
    async (c) => c.json({ traceroute: await requestTraceroute(c.var.ctx, c.req.valid('json')) }, 202),
  )
  .get(
    '/:id/answers',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('The nodes that answered a traceroute to all, the best heard first', {
      200: directAnswersSchema,
    }),
    validate('param', idParam),
    async (c) => c.json(await listDirectAnswers(c.var.ctx, c.req.valid('param').id)),
  )
