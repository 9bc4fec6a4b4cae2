import * as z from 'zod'
import { timeField } from '../../http/fields.ts'

export const backupSettingsSchema = z.strictObject({
  enabled: z.boolean(),
  maxBackups: z
    .int()
    .min(1)
    .max(365)
    .describe('How many of the newest scheduled backups to keep. The schedule never deletes manual backups'),
  keepWeekly: z
    .int()
    .min(0)
    .max(520)
    .describe(
      'Number of weeks (Monday to Sunday) whose newest scheduled backup is also kept: the latest weeks that have one',
    ),
  keepMonthly: z.int().min(0).max(240).describe('The same for months'),
  backupTime: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time HH:MM')
    .describe("HH:MM in the service's time zone"),
})

export type BackupSettings = z.infer<typeof backupSettingsSchema>

const { keepWeekly, keepMonthly } = backupSettingsSchema.shape

/**
 * If a client does not send the numbers of weekly and monthly backups, they stay unchanged, because resetting them
 * would delete backups.
 */
export const backupSettingsChangesSchema = backupSettingsSchema.extend({
  keepWeekly: keepWeekly.optional(),
  keepMonthly: keepMonthly.optional(),
})

/** The latest run of the schedule. `error` with `ok: true`: the backup was made, but something after it failed. */
export const lastRunSchema = z
  .object({ at: timeField, ok: z.boolean(), error: z.string().nullable() })
  .nullable()
  .meta({ id: 'BackupRun' })

export const storedSettings = backupSettingsSchema.extend({
  keepWeekly: keepWeekly.default(0),
  keepMonthly: keepMonthly.default(0),
  since: timeField.describe(
    'Since when the schedule has been enabled for this time of day: earlier runs do not count as missed',
  ),
})

export const storedRun = z.strictObject({
  at: timeField,
  ok: z.boolean(),
  error: z.string().nullable(),
  succeededAt: timeField.nullable().describe('When the latest successful run began'),
  failures: z.int().describe('Failures since then'),
})

export type StoredRun = z.infer<typeof storedRun>

/** The stored state of the schedule. */
export type BackupSchedule = { readonly settings: z.infer<typeof storedSettings>; readonly run: StoredRun | null }
