import { Hono } from 'hono'
import { requireToken } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import type { OnBatch } from '../ingest/on-batch.ts'
import { demandRoom } from '../ingest/trust/room.ts'
import { validate } from '../../http/validate.ts'
import { ingestAnswerSchema, storeDelivery } from '../collector/delivery.ts'
import { ingestSchema } from '../collector/items.ts'

/**
 * `onBatch` takes part in the step of each batch.
 * Decision: docs/decisions/ingest-tokens.md
 */
export const ingestRoutes = (onBatch: OnBatch) =>
  new Hono<AppEnv>().post(
    '/',
    requireToken('ingest'),
    answers(
      'Store what a collector has heard. Repeating a delivery changes nothing. A source belongs to the token that delivers it, at most 20 sources per token; when the token is gone, its reports about radios and channels no longer count. Favourites and ignored nodes of a radio are not copied',
      { 200: ingestAnswerSchema },
      ['source_taken', 'too_many_sources'],
    ),
    validate('json', ingestSchema),
    async (c) => {
      demandRoom(c.var.ctx.disk)
      const { credential } = c.var.ctx.viewer
      if (credential.kind !== 'token') throw new AppError('forbidden')
      return c.json(await storeDelivery(c.var.ctx, c.req.valid('json'), credential.tokenId, onBatch))
    },
  )
