import {
  type BackupSchedule,
  type BackupSettings,
  backupSettingsChangesSchema,
  type StoredRun,
  storedRun,
  storedSettings,
} from './schedule.ts'
import { eq, inArray, sql } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { audit, type AuditContext } from '../../audit/audit.ts'
import { timeField } from '../../http/fields.ts'
import { DAY_MS, isFuture } from '../../../shared/time.ts'

/** Rows of the table `settings` with this prefix belong to backups and not to the general list of settings. */
const BACKUP_SETTINGS_PREFIX = 'backup.'

/** The keys of `settings` under which a restore lists the access that it gave back, one row each. */
export const RESTORED_ACCESS_PREFIX = `${BACKUP_SETTINGS_PREFIX}restoredAccess.`
export const RESTORED_ACCESS_KEYS = `${RESTORED_ACCESS_PREFIX}%`

/** The result of the latest restore that was staged on the page. */
export const restoreOutcomeSchema = z
  .object({
    name: z.string(),
    stagedBy: z.string(),
    at: timeField.describe('When the service started with it'),
    error: z.string().nullable().describe('Why nothing was restored; null: it was'),
  })
  .meta({ id: 'RestoreOutcome' })
export type RestoreOutcome = z.infer<typeof restoreOutcomeSchema>

const OUTCOME_KEY = `${BACKUP_SETTINGS_PREFIX}restoreOutcome`

const SETTINGS_KEY = `${BACKUP_SETTINGS_PREFIX}settings`
const RUN_KEY = `${BACKUP_SETTINGS_PREFIX}lastRun`

const DEFAULTS = { enabled: false, maxBackups: 7, keepWeekly: 0, keepMonthly: 0, backupTime: '03:00', since: 0 }

export async function readBackupSchedule({ db }: Store): Promise<BackupSchedule> {
  const rows = await db
    .select()
    .from(settings)
    .where(inArray(settings.key, [SETTINGS_KEY, RUN_KEY]))
    .all()
  const value = (key: string): unknown => {
    const row = rows.find((row) => row.key === key)
    return row === undefined ? undefined : JSON.parse(row.value)
  }
  return {
    settings: storedSettings.default(DEFAULTS).parse(value(SETTINGS_KEY)),
    run: storedRun.nullable().default(null).parse(value(RUN_KEY)),
  }
}

/** Of the latest staged restore; null: there was none, or its result is forgotten. */
export async function readRestoreOutcome({ db }: Store): Promise<RestoreOutcome | null> {
  const row = await db.select({ value: settings.value }).from(settings).where(eq(settings.key, OUTCOME_KEY)).get()
  const found = row === undefined ? null : restoreOutcomeSchema.safeParse(JSON.parse(row.value))
  return found?.success === true ? found.data : null
}

/** The statement that replaces it. */
export function outcomeWrites(store: Store, outcome: RestoreOutcome | null, now: number) {
  return outcome === null
    ? store.db.delete(settings).where(eq(settings.key, OUTCOME_KEY))
    : put(store, OUTCOME_KEY, outcome, now)
}

/** Replaces the settings. The schedule starts over when it is switched on or its time of day changes. */
export async function replaceBackupSettings(
  ctx: AuditContext,
  wanted: z.infer<typeof backupSettingsChangesSchema>,
): Promise<void> {
  const now = ctx.now()
  const { since, ...before } = (await readBackupSchedule(ctx.store)).settings
  const { enabled, maxBackups, backupTime } = wanted
  const { keepWeekly = before.keepWeekly, keepMonthly = before.keepMonthly } = wanted
  const next = { enabled, maxBackups, keepWeekly, keepMonthly, backupTime }
  const startsAnew = next.backupTime !== before.backupTime || (next.enabled && !before.enabled)
  const changed = changes(before, next)
  if (Object.keys(changed.after).length === 0) return
  // Another request may have made the same change since it was read.
  const isOther = sql`not exists (select 1 from ${settings}
    where ${settings.key} = ${SETTINGS_KEY} and json_remove(${settings.value}, '$.since') = ${JSON.stringify(next)})`
  await ctx.store.atomic([
    audit(ctx, 'backup_settings_updated', changed, { onlyIf: isOther }),
    put(ctx.store, SETTINGS_KEY, { ...next, since: startsAnew ? now : since }, now),
  ])
}

function changes(before: BackupSettings, after: BackupSettings): Record<'before' | 'after', object> {
  const isSame: Readonly<Record<string, boolean>> = {
    enabled: before.enabled === after.enabled,
    maxBackups: before.maxBackups === after.maxBackups,
    keepWeekly: before.keepWeekly === after.keepWeekly,
    keepMonthly: before.keepMonthly === after.keepMonthly,
    backupTime: before.backupTime === after.backupTime,
  }
  const changed = (some: BackupSettings) => Object.fromEntries(Object.entries(some).filter(([key]) => !isSame[key]))
  return { before: changed(before), after: changed(after) }
}

/** Records the result of a run of the schedule that began at `at`; a failure also gets an audit entry. */
export async function recordScheduledRun(
  ctx: AuditContext,
  run: { readonly at: number; readonly ok: boolean; readonly error: string | null },
): Promise<void> {
  const { run: last } = await readBackupSchedule(ctx.store)
  const value: StoredRun = run.ok
    ? { ...run, succeededAt: run.at, failures: 0 }
    : { ...run, succeededAt: last?.succeededAt ?? null, failures: (last?.failures ?? 0) + 1 }
  const write = put(ctx.store, RUN_KEY, value, ctx.now())
  await ctx.store.atomic(
    run.ok ? [write] : [write, audit(ctx, 'backup_failed', { kind: 'scheduled', error: run.error })],
  )
}

/** Drops times recorded by a clock that was a day or more ahead: the schedule would wait for them. */
export async function forgetFutureRuns(ctx: AuditContext): Promise<void> {
  const now = ctx.now()
  const { settings, run } = await readBackupSchedule(ctx.store)
  const isWrong = (at: number | null) => at !== null && isFuture(at, now, DAY_MS)
  if (isWrong(settings.since)) await put(ctx.store, SETTINGS_KEY, { ...settings, since: now }, now)
  if (run !== null && (isWrong(run.succeededAt) || isWrong(run.at))) {
    const succeededAt = run.succeededAt === null ? null : Math.min(run.succeededAt, now)
    await put(ctx.store, RUN_KEY, { ...run, at: Math.min(run.at, now), succeededAt }, now)
  }
}

function put({ db }: Store, key: string, value: unknown, now: number) {
  const row = { key, value: JSON.stringify(value), updatedAt: now }
  return db
    .insert(settings)
    .values(row)
    .onConflictDoUpdate({ target: settings.key, set: { value: row.value, updatedAt: now } })
}
