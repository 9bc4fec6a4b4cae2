import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { validate } from '../../http/validate.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { pastSchema, readPast } from './past.ts'
import { explainSilence, silenceSchema } from './silence.ts'

const nodeParam = z.object({ id: nodeNumSchema })

export const nodeHistoryRoutes = new Hono<AppEnv>()
  .get(
    '/:id/past',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('When and by whom a node was heard, and what happened to it', { 200: pastSchema }, ['node_not_found']),
    validate('param', nodeParam),
    async (c) => c.json(await readPast(c.var.ctx, c.req.valid('param').id)),
  )
  .get(
    '/:id/silence',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('Why a node may be silent, from what is stored. Nothing is sent', { 200: silenceSchema }, [
      'node_not_found',
    ]),
    validate('param', nodeParam),
    async (c) => c.json(await explainSilence(c.var.ctx, c.req.valid('param').id)),
  )
