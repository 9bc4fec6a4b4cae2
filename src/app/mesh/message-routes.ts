import { Hono } from 'hono'
import { z } from 'zod'
import { requirePermission } from '../access.ts'
import type { AppEnv } from '../context.ts'
import { answers } from '../describe.ts'
import { idSchema, integerQuery, timeQuery, validate } from '../validate.ts'
import { listMessages, MAX_MESSAGES, messagePageSchema } from './messages.ts'
import { nodeNumSchema } from './nodes.ts'

export const messageRoutes = new Hono<AppEnv>().get(
  '/',
  requirePermission('messages', 'read'),
  answers('Messages, newest first', { 200: messagePageSchema }),
  validate(
    'query',
    z.object({
      limit: integerQuery(1, MAX_MESSAGES).default(100),
      before: idSchema.optional().describe('Id of a message: those that arrived before it'),
      since: timeQuery.optional().describe('Time in ms since the epoch: messages of that time or later'),
      channel: integerQuery(0, 255).optional(),
      with: nodeNumSchema.optional().describe('Node number or !hex: direct messages from and to this node'),
      q: z.string().min(1).max(200).optional().describe('Part of the text'),
    }),
  ),
  async (c) =>
    c.body(await listMessages(c.var.ctx.store, c.req.valid('query')), 200, { 'Content-Type': 'application/json' }),
)
