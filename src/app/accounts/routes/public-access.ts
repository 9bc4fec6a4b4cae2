import { Hono } from 'hono'
import { requireFreshProof } from '../fresh-proof.ts'
import type { AppEnv } from '../../base/context.ts'
import { requireAdmin } from '../access/require.ts'
import { answers } from '../../http/describe.ts'
import { validate } from '../../http/validate.ts'
import {
  publicAccessChangesSchema,
  publicAccessSchema,
  readPublicAccess,
  updatePublicAccess,
} from '../access/public-access.ts'
import { beginPreview, ticketAnswer } from '../access/see-as.ts'

export const publicAccessRoutes = new Hono<AppEnv>()
  .get('/', requireAdmin, answers('What anonymous callers see', { 200: publicAccessSchema }), async (c) =>
    c.json(await readPublicAccess(c.var.ctx.store)),
  )
  .put(
    '/',
    requireAdmin,
    requireFreshProof,
    answers('Change what anonymous callers see. Missing fields stay as they are', {
      200: publicAccessSchema,
    }),
    validate('json', publicAccessChangesSchema),
    async (c) => c.json(await updatePublicAccess(c.var.ctx, c.req.valid('json'))),
  )
  .post(
    '/preview',
    requireAdmin,
    answers(
      'Preview what anonymous callers would see with these settings, in force or not. Lasts half an hour, and is recorded',
      {
        200: ticketAnswer,
      },
    ),
    validate('json', publicAccessSchema),
    async (c) => c.json(await beginPreview(c.var.ctx, c.req.valid('json'))),
  )
