import { Hono } from 'hono'
import { requirePermission } from '../accounts/access/require.ts'
import type { AppEnv } from '../base/context.ts'
import { answers } from '../http/describe.ts'
import { validate } from '../http/validate.ts'
import { readRetentionState, retentionSchema } from '../retention/state.ts'
import { readSettings, settingsChangesSchema, settingsSchema, updateSettings } from '../settings/settings.ts'

export const settingsRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('settings', 'read'),
    answers('All settings of the service', { 200: settingsSchema }),
    async (c) => c.json(await readSettings(c.var.ctx.store)),
  )
  .get(
    '/retention',
    requirePermission('settings', 'read'),
    answers('How long data is really kept, why it may be less than is set, and what is behind', {
      200: retentionSchema,
    }),
    async (c) => c.json(await readRetentionState(c.var.ctx.store, c.var.ctx.now())),
  )
  .put(
    '/',
    requirePermission('settings', 'write'),
    answers('Change the given settings. The others stay unchanged', { 200: settingsSchema }),
    validate('json', settingsChangesSchema),
    async (c) => c.json(await updateSettings(c.var.ctx, c.req.valid('json'))),
  )
