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
import { inTurn } from '../../http/limits/in-turn.ts'
import { nameParam } from '../backup/backup.ts'
import {
  cancelRestore,
  forgetRestoreOutcome,
  previewRestore,
  readRestoreState,
  restorePreviewSchema,
  restoreStateSchema,
  stageRestore,
} from './staging.ts'

const MAX_AT_ONCE = 1000

const idsSchema = z
  .array(z.int().min(1))
  .min(1)
  .max(MAX_AT_ONCE)
  .refine((ids) => new Set(ids).size === ids.length, 'each id once')

export const restoreRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireAdmin,
    answers('The restore that the next start performs, and the result of the latest one', { 200: restoreStateSchema }, [
      'unsupported_on_this_runtime',
    ]),
    async (c) => c.json(await readRestoreState(c.var.ctx)),
  )
  .delete(
    '/',
    requireAdmin,
    answers('Cancel the staged restore', { 204: null }, ['not_found', 'unsupported_on_this_runtime']),
    async (c) => {
      await cancelRestore(c.var.ctx)
      return c.body(null, 204)
    },
  )
  .delete(
    '/outcome',
    requireAdmin,
    answers('Forget the result of the latest restore', { 204: null }, ['unsupported_on_this_runtime']),
    async (c) => {
      await forgetRestoreOutcome(c.var.ctx)
      return c.body(null, 204)
    },
  )
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

/** Of one backup, below the path of backups. */
export const stagingRoutes = new Hono<AppEnv>()
  .get(
    '/:name/restore',
    requireAdmin,
    answers('What a restore of a backup brings back, and what is lost', { 200: restorePreviewSchema }, [
      'backup_not_found',
      'backup_unusable',
      'unsupported_on_this_runtime',
    ]),
    validate('param', nameParam),
    async (c) => c.json(await previewRestore(c.var.ctx, c.req.valid('param').name)),
  )
  .post(
    '/:name/restore',
    requireAdmin,
    requireFreshProof,
    inTurn('stream'),
    answers(
      'Stage the restore of a backup: the next start performs it. All of the backup is verified before. If restartBy is supervisor, the service then restarts by itself',
      { 202: restoreStateSchema },
      ['backup_not_found', 'backup_unusable', 'restore_staged', 'unsupported_on_this_runtime'],
    ),
    validate('param', nameParam),
    async (c) => c.json(await stageRestore(c.var.ctx, c.req.valid('param').name), 202),
  )
