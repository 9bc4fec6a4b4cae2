import type { Backup, BackupKind, Backups } from './backup.ts'
import { type Actor, audit, type AuditContext } from '../../audit/audit.ts'
import type { Statement } from '../../../db/store.ts'
import type { Ports } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'

/** What the commands need from a request or from the schedule. */
export type BackupContext = AuditContext & Pick<Ports, 'backups'>

/** Throws `unsupported_on_this_runtime`. */
export function demandBackups(ctx: Pick<Ports, 'backups'>): Backups {
  if (ctx.backups === null)
    throw new AppError(
      'unsupported_on_this_runtime',
      'This service has no place for backups: on the edge it is an R2 bucket, bound as BACKUPS',
    )
  return ctx.backups
}

/** Makes a backup; null: it goes on after the answer. Throws `backup_in_progress`. */
export async function createBackup(ctx: BackupContext, kind: BackupKind): Promise<Backup | null> {
  return demandBackups(ctx).create(kind, (backup) => ctx.store.atomic([entryOfBackup(ctx, backup)]), ctx)
}

/** The entry of the audit log about a new backup. */
export function entryOfBackup(ctx: AuditContext, backup: Backup, options: { actor?: Actor } = {}): Statement {
  return audit(ctx, 'backup_created', withoutTime(backup), options)
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
