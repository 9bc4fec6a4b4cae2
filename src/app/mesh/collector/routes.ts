import { Hono } from 'hono'
import { requireToken } from '../../http/access.ts'
import type { AppEnv } from '../../context.ts'
import { answers } from '../../http/describe.ts'
import { demandRoom } from '../ingest/room.ts'
import { validate } from '../../http/validate.ts'
import { ingestAnswerSchema, storeDelivery } from './delivery.ts'
import { ingestSchema } from './items.ts'

export const ingestRoutes = new Hono<AppEnv>().post(
  '/',
  requireToken('ingest'),
  answers(
    'Store what a collector beside a radio has heard; the same delivery again changes nothing',
    { 200: ingestAnswerSchema },
    ['source_taken', 'too_many_sources'],
  ),
  validate('json', ingestSchema),
  async (c) => {
    demandRoom(c.var.ctx.disk)
    return c.json(await storeDelivery(c.var.ctx, c.req.valid('json')))
  },
)
