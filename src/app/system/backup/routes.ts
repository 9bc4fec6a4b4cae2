import { backupSchema, nameParam, progressSchema, verificationSchema } from './backup.ts'
import { backupSettingsChangesSchema, backupSettingsSchema, lastRunSchema } from './schedule.ts'
import { Hono } from 'hono'
import * as z from 'zod'
import { requireFreshProof } from '../../accounts/fresh-proof.ts'
import { requireAdmin, requireAdminOrScope } from '../../accounts/access/require.ts'
import type { AppEnv, Ctx } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { validate } from '../../http/validate.ts'
import { readBackupSchedule, replaceBackupSettings } from './settings.ts'
import { createBackup, deleteBackup, demandBackups, downloadBackup } from './backups.ts'
import { timeField } from '../../http/fields.ts'

const runTimes = { nextRunAt: timeField.nullable(), lastRun: lastRunSchema }
const settingsAnswer = backupSettingsSchema.extend(runTimes)

/** GET's answer is accepted as a body too. */
const settingsBody = backupSettingsChangesSchema.extend(z.object(runTimes).partial().shape)

export const backupRoutes = new Hono<AppEnv>()
  .post(
    '/',
    requireAdminOrScope('backup'),
    requireFreshProof,
    answers(
      'Make a backup. On the edge a large one goes on after the answer, which is 202 then: `GET` tells its progress',
      { 201: z.object({ backup: backupSchema }), 202: z.object({ running: progressSchema.nullable() }) },
      ['backup_in_progress', 'unsupported_on_this_runtime'],
    ),
    async (c) => {
      const backup = await createBackup(c.var.ctx, 'manual')
      if (backup !== null) return c.json({ backup }, 201)
      return c.json({ running: await demandBackups(c.var.ctx).running() }, 202)
    },
  )
  .get(
    '/',
    requireAdminOrScope('backup'),
    answers(
      'All backups, newest first. `running` is the progress of a backup that is being made',
      { 200: z.object({ backups: z.array(backupSchema), running: progressSchema.nullable() }) },
      ['unsupported_on_this_runtime'],
    ),
    async (c) => {
      const backups = demandBackups(c.var.ctx)
      return c.json({ backups: await backups.list(), running: await backups.running() })
    },
  )
  .get(
    '/settings',
    requireAdmin,
    answers('The schedule of backups', { 200: settingsAnswer }, ['unsupported_on_this_runtime']),
    async (c) => c.json(await settingsOf(c.var.ctx)),
  )
  .put(
    '/settings',
    requireAdmin,
    answers(
      'Replace the schedule of backups. Without keepWeekly or keepMonthly these stay as they are. The body may repeat nextRunAt and lastRun, which changes nothing',
      { 200: settingsAnswer },
      ['unsupported_on_this_runtime'],
    ),
    validate('json', settingsBody),
    async (c) => {
      const { ctx } = c.var
      const backups = demandBackups(ctx)
      await replaceBackupSettings(ctx, c.req.valid('json'))
      backups.reschedule()
      return c.json(await settingsOf(ctx))
    },
  )
  .get(
    '/download/:name',
    requireAdminOrScope('backup'),
    requireFreshProof,
    inTurn('stream'),
    answers('A backup as a .tar.gz', { 200: { mediaType: 'application/gzip' } }, [
      'backup_not_found',
      'unsupported_on_this_runtime',
    ]),
    validate('param', nameParam),
    async (c) => {
      const { name } = c.req.valid('param')
      const headers = {
        'content-type': 'application/gzip',
        'content-disposition': `attachment; filename="${name}.tar.gz"`,
      }
      if (c.req.method === 'HEAD') {
        await demandBackups(c.var.ctx).find(name)
        return c.body(null, 200, headers)
      }
      return c.body(await downloadBackup(c.var.ctx, name), 200, headers)
    },
  )
  .post(
    '/:name/verify',
    requireAdminOrScope('backup'),
    inTurn('stream'),
    answers('Verify a backup: read all of it and list the problems', { 200: verificationSchema }, [
      'backup_not_found',
      'unsupported_on_this_runtime',
    ]),
    validate('param', nameParam),
    async (c) => c.json(await demandBackups(c.var.ctx).verify(c.req.valid('param').name)),
  )
  .delete(
    '/:name',
    requireAdmin,
    answers('Delete a backup', { 204: null }, ['backup_not_found', 'unsupported_on_this_runtime']),
    validate('param', nameParam),
    async (c) => {
      await deleteBackup(c.var.ctx, c.req.valid('param').name, 'asked')
      return c.body(null, 204)
    },
  )

async function settingsOf(ctx: Ctx) {
  const backups = demandBackups(ctx)
  const schedule = await readBackupSchedule(ctx.store)
  const { since: _, ...settings } = schedule.settings
  const run = schedule.run
  const lastRun = run === null ? null : { at: run.at, ok: run.ok, error: run.error }
  return { ...settings, nextRunAt: await backups.nextRun(schedule), lastRun }
}
