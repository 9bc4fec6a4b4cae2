import * as z from 'zod'
import { timeField } from '../../http/fields.ts'
import type { BackupSchedule } from './schedule.ts'

// Any name is accepted here: an impossible one gets the same answer as an unknown one.
export const nameParam = z.object({ name: z.string().describe('Name of the backup, such as 2026-01-15_130000') })

/** The backups of a service. An impossible name is `backup_not_found`, without looking for it. */
export interface Backups {
  /** Newest first. */
  list(): Promise<Backup[]>
  /** Throws `backup_not_found`. */
  find(name: string): Promise<Backup>
  running(): BackupProgress | null | Promise<BackupProgress | null>
  /**
   * `record` runs when the backup is complete; if it throws, the backup is deleted. Throws `backup_in_progress`. Null: it
   * goes on after the answer, and is recorded as made by `by`; its failure too.
   */
  create(kind: BackupKind, record: (backup: Backup) => Promise<void>, by: Asking): Promise<Backup | null>
  /** `record` runs when the backup is hidden; if it throws, the backup reappears. Throws `backup_not_found`. */
  remove(name: string, record: () => Promise<void>): Promise<void>
  /** Verifies a backup by reading all of it. Throws `backup_not_found`. */
  verify(name: string): Promise<Verification>
  /** A gzipped tar archive, made while it is read. Throws `backup_not_found`. */
  download(name: string): Promise<ReadableStream<Uint8Array>>
  /** When the schedule runs next: now when a run is due, null when it is off. */
  nextRun(schedule: BackupSchedule): number | null | Promise<number | null>
  /** Call it when the stored schedule has changed. */
  reschedule(): void
}

/** Who asked for a backup. */
export type Asking = {
  readonly viewer: { readonly user: { readonly id: number; readonly username: string } } | null
  readonly ip: string | null
  readonly requestId: string | null
}

/** Restores of backups that the next start performs: nothing replaces the database while it is open. */
export interface Restores {
  staged(): StagedRestore | null
  /** What a backup contains, by its manifest. Throws `backup_not_found`, `backup_unusable`. */
  preview(name: string): Promise<{
    readonly backup: Backup
    readonly signature: Signature
    readonly brings: { readonly users: number; readonly nodes: number; readonly messages: number }
  }>
  /**
   * Verifies all of the backup, and stages it durably. `record` runs then; if it throws, nothing is staged. Throws
   * `backup_not_found`, `backup_unusable`, and `restore_staged` if there is one already.
   */
  stage(name: string, by: string, record: (backup: Backup) => Promise<void>): Promise<void>
  /** `record` runs when nothing is staged any more; if it throws, it is staged again. Throws `not_found`. */
  cancel(record: (name: string) => Promise<void>): Promise<void>
  /** Who starts the service again after `restart`. */
  readonly restartBy: 'supervisor' | 'hand'
  /** Stops the service once the requests that run have been answered. */
  restart(): void
}

export const BACKUP_KINDS = ['manual', 'scheduled'] as const

export type BackupKind = (typeof BACKUP_KINDS)[number]

/** A finished backup, according to its manifest. */
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

/** The progress of a running backup: finished tables, and rows of all tables. */
export const progressSchema = z
  .object({ name: z.string(), tables: z.int(), rows: z.int() })
  .meta({ id: 'BackupProgress', description: 'The progress of a backup: finished tables, and rows of all tables' })

export type BackupProgress = z.infer<typeof progressSchema>

/** Who signed a backup: this service with its own secret, another secret, or none. */
export const SIGNATURES = ['own', 'foreign', 'none'] as const

export type Signature = (typeof SIGNATURES)[number]

export const verificationSchema = z
  .object({
    ok: z.boolean(),
    tables: z.int(),
    rows: z.int(),
    signature: z
      .enum(SIGNATURES)
      .describe('Only `own` proves that the backup was not changed by anybody without the secret'),
    problems: z.array(z.string()),
  })
  .meta({ id: 'BackupVerification' })

export type Verification = z.infer<typeof verificationSchema>

export const stagedRestoreSchema = z
  .object({ name: z.string(), stagedAt: timeField, by: z.string() })
  .meta({ id: 'StagedRestore', description: 'A restore that the next start of the service performs' })

export type StagedRestore = z.infer<typeof stagedRestoreSchema>
