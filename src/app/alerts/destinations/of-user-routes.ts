import { Hono } from 'hono'
import * as z from 'zod'
import { requireAdmin } from '../../accounts/access/require.ts'
import { requireFreshProof } from '../../accounts/fresh-proof.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { idParam, idSchema, validate } from '../../http/validate.ts'
import { deleteDestinationOf, deleteDestinationsOf, destinationSchema, listDestinationsOf } from './destinations.ts'

const destinationParam = z.object({ id: idSchema, destinationId: idSchema.describe('ID of the destination') })

/** The destinations of a user's alerts, for administrators, beside the user's sessions and tokens. */
export const userDestinationRoutes = new Hono<AppEnv>()
  .get(
    '/:id/destinations',
    requireAdmin,
    answers(
      'Where the alerts of a user are sent, without secrets and settings',
      { 200: z.object({ destinations: z.array(destinationSchema) }) },
      ['user_not_found'],
    ),
    validate('param', idParam),
    async (c) => c.json(await listDestinationsOf(c.var.ctx, c.req.valid('param').id)),
  )
  .delete(
    '/:id/destinations',
    requireAdmin,
    requireFreshProof,
    answers('Delete all destinations of a user', { 204: null }, ['user_not_found']),
    validate('param', idParam),
    async (c) => {
      await deleteDestinationsOf(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .delete(
    '/:id/destinations/:destinationId',
    requireAdmin,
    requireFreshProof,
    answers('Delete one destination of a user', { 204: null }, ['user_not_found', 'destination_not_found']),
    validate('param', destinationParam),
    async (c) => {
      const { id, destinationId } = c.req.valid('param')
      await deleteDestinationOf(c.var.ctx, id, destinationId)
      return c.body(null, 204)
    },
  )
