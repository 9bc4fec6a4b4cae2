import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission, requireSession } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { basePath } from '../../config/config.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { idParam, validate } from '../../http/validate.ts'
import { MAX_BOARDS } from '../../../shared/mesh/boards.ts'
import { boardListSchema, boardSchema, newBoardSchema } from './board.ts'
import { createBoard, deleteBoard, getBoard, listBoards, orderBoards, replaceBoard } from './boards.ts'

const shown = z.object({ board: boardSchema })

export const boardRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('info', 'read'),
    answers('Your boards, and those that others share with you', { 200: boardListSchema }),
    async (c) => c.json(await listBoards(c.var.ctx)),
  )
  .post(
    '/',
    requireSession,
    answers('Make a board of charts. Whoever reads it gets only the measurements that they may see', { 201: shown }, [
      'too_many_boards',
      'node_not_found',
      'forbidden',
    ]),
    validate('json', newBoardSchema),
    async (c) => {
      const { ctx } = c.var
      const board = await createBoard(ctx, c.req.valid('json'))
      return c.json({ board }, 201, { Location: `${basePath(ctx.config)}/api/boards/${board.id}` })
    },
  )
  .put(
    '/order',
    requireSession,
    answers('The order of your own boards', { 204: null }),
    validate('json', z.strictObject({ ids: z.array(z.int().min(1)).max(MAX_BOARDS) })),
    async (c) => {
      await orderBoards(c.var.ctx, c.req.valid('json').ids)
      return c.body(null, 204)
    },
  )
  .get(
    '/:id',
    requirePermission('info', 'read'),
    inTurn('read'),
    answers('A board, with those of its nodes that you see', { 200: shown }, ['not_found']),
    validate('param', idParam),
    async (c) => c.json({ board: await getBoard(c.var.ctx, c.req.valid('param').id) }),
  )
  .put(
    '/:id',
    requireSession,
    answers('Replace one of your boards', { 200: shown }, ['not_found', 'node_not_found', 'forbidden']),
    validate('param', idParam),
    validate('json', newBoardSchema),
    async (c) => c.json({ board: await replaceBoard(c.var.ctx, c.req.valid('param').id, c.req.valid('json')) }),
  )
  .delete(
    '/:id',
    requireSession,
    answers('Delete one of your boards; for administrators also one that is shared with them', { 204: null }, [
      'not_found',
      'forbidden',
    ]),
    validate('param', idParam),
    async (c) => {
      await deleteBoard(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
