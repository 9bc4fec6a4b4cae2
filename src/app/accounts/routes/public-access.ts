import { Hono } from 'hono'
import * as z from 'zod'
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
import {
  createEmbedProfile,
  deleteEmbedProfile,
  embedListSchema,
  embedProfileBody,
  embedProfileSchema,
  listEmbedProfiles,
  updateEmbedProfile,
} from '../access/embed-profiles.ts'
import { beginPreview, ticketAnswer } from '../access/see-as.ts'

const frameParam = z.object({ id: z.string().max(100).describe('ID from the list of frames') })

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
  .get('/frames', requireAdmin, answers('The frames that other sites may show', { 200: embedListSchema }), async (c) =>
    c.json(await listEmbedProfiles(c.var.ctx)),
  )
  .post(
    '/frames',
    requireAdmin,
    requireFreshProof,
    answers('Let sites show a frame: /embed/map, with its ID as profile', { 201: embedProfileSchema }),
    validate('json', embedProfileBody),
    async (c) => c.json(await createEmbedProfile(c.var.ctx, c.req.valid('json')), 201),
  )
  .put(
    '/frames/:id',
    requireAdmin,
    requireFreshProof,
    answers('Replace a frame. Applies at once', { 200: embedProfileSchema }, ['not_found']),
    validate('param', frameParam),
    validate('json', embedProfileBody),
    async (c) => c.json(await updateEmbedProfile(c.var.ctx, c.req.valid('param').id, c.req.valid('json'))),
  )
  .delete(
    '/frames/:id',
    requireAdmin,
    requireFreshProof,
    answers('Delete a frame: sites show it no longer', { 204: null }, ['not_found']),
    validate('param', frameParam),
    async (c) => {
      await deleteEmbedProfile(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
