import { Hono } from 'hono'
import * as z from 'zod'
import { requireToken } from '../accounts/access/require.ts'
import type { AppEnv } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { answers } from '../http/describe.ts'
import { validate } from '../http/validate.ts'
import { collectedSchema, storeCollected } from './collected.ts'

export const collectedRoutes = new Hono<AppEnv>().put(
  '/settings',
  requireToken('radio'),
  answers(
    "Store the settings of a collector's radio. Only sections without secrets are kept, while the collector asks for commands of the kind `settings`. `isKnown` false: the token has no such radio, or its collector does not ask",
    { 200: z.object({ isKnown: z.boolean() }) },
    ['admin_required'],
  ),
  validate('json', collectedSchema),
  async (c) => {
    const { ctx } = c.var
    const { credential } = ctx.viewer
    if (credential.kind !== 'token') throw new AppError('forbidden')
    return c.json({ isKnown: await storeCollected(ctx, credential.tokenId, c.req.valid('json')) })
  },
)
