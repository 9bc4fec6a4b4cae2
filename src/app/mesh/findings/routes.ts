import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { validate } from '../../http/validate.ts'
import { findingsSchema, listFindings, muteFinding, muteSchema } from './findings.ts'

const findingParam = z.object({
  rule: z.string().max(40).describe('What was looked for, as in the list'),
  subject: z
    .string()
    .regex(/^\d{1,10}(?:-\d{1,10}){0,3}$/)
    .describe('As in the list'),
})

export const findingRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('What is wrong in the mesh, as far as the viewer may see it. Looked for each hour; nothing is sent', {
      200: findingsSchema,
    }),
    async (c) => c.json(await listFindings(c.var.ctx)),
  )
  .put(
    '/:rule/:subject',
    requirePermission('info', 'write'),
    answers('Whether a finding is told: muted, it stays in the list and counts nowhere', { 204: null }, ['not_found']),
    validate('param', findingParam),
    validate('json', muteSchema),
    async (c) => {
      const { rule, subject } = c.req.valid('param')
      await muteFinding(c.var.ctx, rule, subject, c.req.valid('json').muted)
      return c.body(null, 204)
    },
  )
