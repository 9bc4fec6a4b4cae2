import { Hono } from 'hono'
import * as z from 'zod'
import { requireFreshProof } from '../../accounts/fresh-proof.ts'
import type { AppEnv } from '../../base/context.ts'
import { requireAdmin } from '../../accounts/access/require.ts'
import { answers } from '../../http/describe.ts'
import { validate } from '../../http/validate.ts'
import {
  acceptRestoredAccess,
  listRestoredAccess,
  reapplicationSchema,
  reapplyRestoredAccess,
  restoredAccessSchema,
} from './restored-access.ts'

const MAX_AT_ONCE = 1000

const idsSchema = z
  .array(z.int().min(1))
  .min(1)
  .max(MAX_AT_ONCE)
  .refine((ids) => new Set(ids).size === ids.length, 'each id once')

export const restoreRoutes = new Hono<AppEnv>()
  .get(
    '/restored-access',
    requireAdmin,
    answers(
      'The revoked access that the latest restore gave back. The list is kept until an administrator decides about it',
      {
        200: z.object({ backup: z.string().nullable(), restoredAccess: z.array(restoredAccessSchema) }),
      },
    ),
    async (c) => c.json(await listRestoredAccess(c.var.ctx.store)),
  )
  .delete(
    '/restored-access',
    requireAdmin,
    answers('Accept what the restore gave back, and delete the list', { 204: null }),
    async (c) => {
      await acceptRestoredAccess(c.var.ctx)
      return c.body(null, 204)
    },
  )
  .post(
    '/reapply',
    requireAdmin,
    requireFreshProof,
    answers(
      'Revoke the selected entries again. `refused` lists those that could not be revoked, and why',
      { 200: reapplicationSchema },
      ['not_found'],
    ),
    validate('json', z.strictObject({ ids: idsSchema })),
    async (c) => c.json(await reapplyRestoredAccess(c.var.ctx, c.req.valid('json').ids)),
  )
