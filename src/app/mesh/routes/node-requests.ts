import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { whereTheRadioIs } from '../../http/radio-process.ts'
import { validate } from '../../http/validate.ts'
import { readTimely } from '../downlink/timely.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { listRequests, newRequestSchema, requestFromNode, requestSchema } from '../sending/request.ts'

const nodeParam = z.object({ id: nodeNumSchema })

export const nodeRequestRoutes = new Hono<AppEnv>()
  .get(
    '/:id/requests',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('The latest requests to a node, newest first', { 200: z.object({ requests: z.array(requestSchema) }) }, [
      'node_not_found',
    ]),
    validate('param', nodeParam),
    async (c) => {
      const { ctx } = c.var
      const read = () => listRequests(ctx, c.req.valid('param').id)
      const isWaiting = (all: Awaited<ReturnType<typeof read>>) => all.some(({ state }) => state === 'waiting')
      return c.json({ requests: await readTimely(ctx, read, isWaiting) })
    },
  )
  .post(
    '/:id/requests',
    requirePermission('info', 'write'),
    answers(
      'Ask a node for its position, measurements or names. What it answers counts as sent to one node',
      { 202: z.object({ request: requestSchema }) },
      ['node_not_found', 'queue_full', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    validate('param', nodeParam),
    validate('json', newRequestSchema),
    whereTheRadioIs,
    async (c) => {
      const request = await requestFromNode(c.var.ctx, c.req.valid('param').id, c.req.valid('json'))
      return c.json({ request }, 202)
    },
  )
