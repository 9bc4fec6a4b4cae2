import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import { chargeAnswer, chargeWork, sharedWhole } from '../../accounts/access/shared.ts'
import type { AppEnv } from '../../base/context.ts'
import { answerBody } from '../../http/compression.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { idParam, validate } from '../../http/validate.ts'
import {
  addShapes,
  changedOverlaySchema,
  changeOverlay,
  createOverlay,
  deleteOverlay,
  isOverlayKept,
  listOverlays,
  moreShapesSchema,
  newOverlaySchema,
  overlayListSchema,
  overlaySchema,
  readOverlay,
} from './overlays.ts'

const shapesSchema = z.object({
  type: z.literal('FeatureCollection'),
  features: z.array(z.looseObject({})).describe('Features of GeoJSON, with a name, a description and a colour at most'),
})

export const overlayRoutes = new Hono<AppEnv>()
  .get(
    '/',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    answers('The overlays of the map that the viewer sees, by name', { 200: overlayListSchema }),
    async (c) => c.json({ overlays: await listOverlays(c.var.ctx) }),
  )
  .get(
    '/:id',
    sharedWhole('nodes', requirePermission('nodes', 'read')),
    inTurn('read'),
    answers(
      'An overlay as GeoJSON: points, lines and areas, each on a line of its own',
      { 200: shapesSchema, 304: null },
      ['not_found'],
    ),
    validate('param', idParam),
    async (c) => {
      const { ctx } = c.var
      const { id } = c.req.valid('param')
      const [begun, isKept] = [ctx.now(), isOverlayKept(ctx, id)]
      const body = await readOverlay(ctx, id)
      const answer = await answerBody(c, ctx.compressor, body)
      if (ctx.viewer === null) {
        chargeAnswer(ctx, answer, body.bytes.length)
        // More public ones than are kept are made again and again.
        if (!isKept) chargeWork(ctx, ctx.now() - begun)
      }
      return answer
    },
  )
  .post(
    '/',
    requirePermission('settings', 'write'),
    inTurn('read'),
    answers(
      'Put shapes on the map. A request has at most 256 KB: further shapes of a larger file follow one after the other',
      { 201: z.object({ id: overlaySchema.shape.id }) },
    ),
    validate('json', newOverlaySchema),
    async (c) => c.json({ id: await createOverlay(c.var.ctx, c.req.valid('json')) }, 201),
  )
  .post(
    '/:id/shapes',
    requirePermission('settings', 'write'),
    inTurn('read'),
    answers('Add shapes to an overlay that is not whole yet', { 204: null }, ['not_found']),
    validate('param', idParam),
    validate('json', moreShapesSchema),
    async (c) => {
      await addShapes(c.var.ctx, c.req.valid('param').id, c.req.valid('json'))
      return c.body(null, 204)
    },
  )
  .put(
    '/:id',
    requirePermission('settings', 'write'),
    answers('Change the name of an overlay, and who sees it', { 200: overlaySchema }, ['not_found']),
    validate('param', idParam),
    validate('json', changedOverlaySchema),
    async (c) => c.json(await changeOverlay(c.var.ctx, c.req.valid('param').id, c.req.valid('json'))),
  )
  .delete(
    '/:id',
    requirePermission('settings', 'write'),
    answers('Remove an overlay from the map', { 204: null }, ['not_found']),
    validate('param', idParam),
    async (c) => {
      await deleteOverlay(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
