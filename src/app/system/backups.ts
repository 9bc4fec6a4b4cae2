import * as z from 'zod'
import { audit, type AuditContext } from '../audit/audit.ts'
import type { Backups, Ports } from '../context.ts'
import { AppError } from '../http/errors.ts'
import { timeField } from '../http/fields.ts'

export const BACKUP_KINDS = ['manual', 'scheduled'] as const
export type BackupKind = (typeof BACKUP_KINDS)[number]

/** A finished backup, as its manifest tells. */
export const backupSchema = z
  .object({
    name: z.string(),
    createdAt: timeField,
    kind: z.enum(BACKUP_KINDS),
    appVersion: z.string(),
    schema: z.string().describe('The last migration of the database it was taken from'),
    tables: z.int(),
    rows: z.int(),
    sizeBytes: z.int(),
  })
  .meta({ id: 'Backup', description: 'A finished backup, by its manifest' })
export type Backup = z.infer<typeof backupSchema>

/** How far a backup under way has come: whole tables, and rows of all of them. */
export const progressSchema = z
  .object({ name: z.string(), tables: z.int(), rows: z.int() })
  .meta({ id: 'BackupProgress', description: 'A backup under way: whole tables, and rows of all of them' })
export type BackupProgress = z.infer<typeof progressSchema>

/** Who signed a backup: this service, by a secret of its own; somebody else's secret; nobody. */
export const SIGNATURES = ['own', 'foreign', 'none'] as const
export type Signature = (typeof SIGNATURES)[number]

export const verificationSchema = z
  .object({
    ok: z.boolean(),
    tables: z.int(),
    rows: z.int(),
    signature: z.enum(SIGNATURES).describe('Only `own` proves that nobody without the secret has changed the backup'),
    problems: z.array(z.string()),
  })
  .meta({ id: 'BackupVerification' })
export type Verification = z.infer<typeof verificationSchema>

/** What the verbs need of a request, or of the schedule. */
export type BackupContext = AuditContext & Pick<Ports, 'backups'>

/** Throws `unsupported_on_this_runtime`. */
export function demandBackups(ctx: Pick<Ports, 'backups'>): Backups {
  if (ctx.backups === null) throw new AppError('unsupported_on_this_runtime', 'This runtime has no backups')
  return ctx.backups
}

/** Makes a backup. Throws `backup_in_progress`. */
export async function createBackup(ctx: BackupContext, kind: BackupKind): Promise<Backup> {
  return demandBackups(ctx).create(kind, (backup) =>
    ctx.store.atomic([audit(ctx, 'backup_created', withoutTime(backup))]),
  )
}

function withoutTime({ name, kind, schema, tables, rows, sizeBytes }: Backup): Record<string, unknown> {
  return { name, kind, schema, tables, rows, sizeBytes }
}

/** Deletes a backup; `reason` is recorded. Throws `backup_not_found`. */
export async function deleteBackup(ctx: BackupContext, name: string, reason: 'asked' | 'retention'): Promise<void> {
  await demandBackups(ctx).remove(name, () => ctx.store.atomic([audit(ctx, 'backup_deleted', { name, reason })]))
}

/** A gzipped tar archive, made while it is read. Throws `backup_not_found`. */
export async function downloadBackup(ctx: BackupContext, name: string): Promise<ReadableStream<Uint8Array>> {
  const archive = await demandBackups(ctx).download(name)
  await ctx.store.atomic([audit(ctx, 'backup_downloaded', { name })])
  return archive
}
