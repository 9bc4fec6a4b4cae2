import { Hono } from 'hono'
import * as z from 'zod'
import { requireAdmin } from '../../accounts/access/require.ts'
import { requireFreshProof } from '../../accounts/fresh-proof.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { idParam, validate } from '../../http/validate.ts'
import { noteDrill, recipientsSchema, replaceRecipients } from './keys.ts'
import {
  addPlace,
  changePlace,
  copiesSchema,
  deletePlace,
  listCopies,
  newPlaceSchema,
  placeChangesSchema,
  placeSchema,
  probedSchema,
  probePlaceSchema,
  testPlace,
} from './places.ts'

const placeAnswer = z.object({ place: placeSchema })

// Backups need a disk: these are refused on the edge.
export const copyRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireAdmin,
    answers(
      'Encrypted copies of backups at other places: the places, the copies, and who can open them',
      {
        200: copiesSchema,
      },
      ['unsupported_on_this_runtime'],
    ),
    async (c) => c.json(await listCopies(c.var.ctx)),
  )
  .put(
    '/',
    requireAdmin,
    requireFreshProof,
    answers(
      'Replace the public keys for which copies are encrypted. Copies that were made before keep theirs. Private keys are never sent to the service',
      { 204: null },
      ['unsupported_on_this_runtime'],
    ),
    validate('json', recipientsSchema),
    async (c) => {
      await replaceRecipients(c.var.ctx, c.req.valid('json').recipients)
      return c.body(null, 204)
    },
  )
  .post(
    '/drill',
    requireAdmin,
    answers('Note that somebody has restored a copy on another machine just now', { 204: null }, [
      'unsupported_on_this_runtime',
    ]),
    async (c) => {
      await noteDrill(c.var.ctx)
      return c.body(null, 204)
    },
  )
  .post(
    '/',
    requireAdmin,
    requireFreshProof,
    answers('Add a place. The newest backup is copied there at once, then each new one', { 201: placeAnswer }, [
      'unsupported_on_this_runtime',
    ]),
    validate('json', newPlaceSchema),
    async (c) => c.json({ place: await addPlace(c.var.ctx, c.req.valid('json')) }, 201),
  )
  .post(
    '/test',
    requireAdmin,
    requireFreshProof,
    answers('Write, read and delete a small file at a place. Nothing is saved', { 200: probedSchema }, [
      'not_found',
      'rate_limited',
      'unsupported_on_this_runtime',
    ]),
    validate('json', probePlaceSchema),
    inTurn('read'),
    async (c) => c.json(await testPlace(c.var.ctx, c.req.valid('json'))),
  )
  .put(
    '/:id',
    requireAdmin,
    requireFreshProof,
    answers('Change a place, switch it on or off, or try again now', { 200: placeAnswer }, [
      'not_found',
      'configuration_changed',
      'unsupported_on_this_runtime',
    ]),
    validate('param', idParam),
    validate('json', placeChangesSchema),
    async (c) => c.json({ place: await changePlace(c.var.ctx, c.req.valid('param').id, c.req.valid('json')) }),
  )
  .delete(
    '/:id',
    requireAdmin,
    requireFreshProof,
    answers('Forget a place. The copies there stay', { 204: null }, ['not_found', 'unsupported_on_this_runtime']),
    validate('param', idParam),
    async (c) => {
      await deletePlace(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
