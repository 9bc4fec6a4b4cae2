import { Hono } from 'hono'
import { requirePermission } from '../accounts/access/require.ts'
import type { AppEnv } from '../base/context.ts'
import { answers } from '../http/describe.ts'
import { validate } from '../http/validate.ts'
import { readSettings, settingsChangesSchema, settingsSchema, updateSettings } from '../settings/settings.ts'

export const settingsRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('settings', 'read'),
    answers('All settings of the service', { 200: settingsSchema }),
    async (c) => c.json(await readSettings(c.var.ctx.store)),
  )
  .put(
    '/',
    requirePermission('settings', 'write'),
    answers('Change the given settings. The others stay unchanged', { 200: settingsSchema }),
    validate('json', settingsChangesSchema),
    async (c) => c.json(await updateSettings(c.var.ctx, c.req.valid('json'))),
  )
