import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog, messages, nodes, users } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { AUDIT_ACTIONS, type AuditResource } from '../../../shared/access/audit-actions.ts'
import { MAX_COUNTED } from '../../../shared/limits.ts'
import { namesOf } from '../../../shared/names.ts'
import { audit, type AuditContext } from '../../audit/audit.ts'
import type { Ports, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { said } from '../../words/words.ts'
import { backupSchema, type Restores, SIGNATURES, stagedRestoreSchema } from '../backup/backup.ts'
import { outcomeWrites, readRestoreOutcome, restoreOutcomeSchema } from '../backup/settings.ts'

const counted = z.int().max(MAX_COUNTED).describe(`Counted up to ${MAX_COUNTED}`)

export const restoreStateSchema = z.object({
  staged: stagedRestoreSchema.nullable().describe('The restore that the next start performs'),
  restartBy: z
    .enum(['supervisor', 'hand'])
    .describe('Who starts the service again: what runs it, after it has ended itself, or somebody'),
  instances: z.int().describe('Running processes on the same data directory: all must stop before a restore'),
  outcome: restoreOutcomeSchema.nullable().describe('Of the latest staged restore, until an administrator forgets it'),
})

export const restorePreviewSchema = z.object({
  backup: backupSchema,
  signature: z.enum(SIGNATURES),
  brings: z
    .object({ users: z.int(), nodes: z.int(), messages: z.int() })
    .describe('Rows of the backup: these come back as they were'),
  loses: z
    .object({ users: counted, nodes: counted, messages: counted, changes: counted })
    .describe(
      'What is newer than the backup; changes are entries of the audit log besides those about signing in and backups',
    ),
})

/** Throws `unsupported_on_this_runtime`. */
function demandRestores(ctx: Pick<Ports, 'restores'>): Restores {
  if (ctx.restores === null) throw new AppError('unsupported_on_this_runtime', 'This runtime restores no backups')
  return ctx.restores
}

export async function readRestoreState(ctx: SignedInCtx): Promise<z.infer<typeof restoreStateSchema>> {
  const restores = demandRestores(ctx)
  const instances = ctx.instances?.list().length ?? 1
  return {
    staged: restores.staged(),
    restartBy: instances > 1 ? 'hand' : restores.restartBy,
    instances,
    outcome: await readRestoreOutcome(ctx.store),
  }
}

/** What a restore of a backup would bring back, and what would be lost. Throws `backup_not_found`, `backup_unusable`. */
export async function previewRestore(ctx: SignedInCtx, name: string): Promise<z.infer<typeof restorePreviewSchema>> {
  const found = await demandRestores(ctx).preview(name)
  return { ...found, loses: await countNewer(ctx.store, found.backup.createdAt) }
}

/** Entries of these resources change nothing that a restore would take away. */
const NO_CHANGES: ReadonlySet<AuditResource> = new Set(['auth', 'system_backup', 'audit'])
const UNCOUNTED = namesOf(AUDIT_ACTIONS).filter((action) => NO_CHANGES.has(AUDIT_ACTIONS[action]))

async function countNewer({ db }: Store, at: number) {
  const newer = (from: ReturnType<typeof sql>) => sql`(select count(*) from (select 1 ${from} limit ${MAX_COUNTED}))`
  const row = await db.get<z.infer<typeof restorePreviewSchema>['loses']>(sql`select
    ${newer(sql`from ${users} where ${users.createdAt} > ${at}`)} as users,
    ${newer(sql`from ${nodes} where ${nodes.firstHeard} > ${at}`)} as nodes,
    ${newer(sql`from ${messages} where ${messages.timestamp} > ${at}`)} as messages,
    ${newer(sql`from ${auditLog} where ${auditLog.timestamp} > ${at}
      and ${auditLog.action} not in (select value from json_each(${JSON.stringify(UNCOUNTED)}))`)} as changes`)
  return row ?? { users: 0, nodes: 0, messages: 0, changes: 0 }
}

/**
 * Stages the restore for the next start, and restarts the service if something starts it again. Throws
 * `backup_not_found`, `backup_unusable`, `restore_staged`.
 */
export async function stageRestore(ctx: SignedInCtx, name: string): Promise<z.infer<typeof restoreStateSchema>> {
  const restores = demandRestores(ctx)
  if (ctx.config.RESTORE_FROM_BACKUP !== null) {
    throw new AppError('backup_unusable', said('Every start follows RESTORE_FROM_BACKUP: remove that variable first'))
  }
  await restores.stage(name, ctx.viewer.user.username, ({ createdAt }) =>
    ctx.store.atomic([audit(ctx, 'backup_restore_staged', { name, createdAt })]),
  )
  const state = await readRestoreState(ctx)
  if (state.restartBy === 'supervisor') restores.restart()
  return state
}

/** The next start restores nothing. Throws `not_found` if nothing is staged. */
export async function cancelRestore(ctx: SignedInCtx): Promise<void> {
  await demandRestores(ctx).cancel((name) => ctx.store.atomic([audit(ctx, 'backup_restore_cancelled', { name })]))
}

/** Deletes the result of the latest staged restore, which has been read. */
export async function forgetRestoreOutcome(ctx: SignedInCtx): Promise<void> {
  demandRestores(ctx)
  await outcomeWrites(ctx.store, null, ctx.now())
}

/** Records a staged restore that failed, in the database that is still there. */
export async function recordFailedRestore(
  ctx: AuditContext,
  failed: z.infer<typeof restoreOutcomeSchema>,
): Promise<void> {
  const { name, stagedBy, error } = failed
  await ctx.store.atomic([
    audit(ctx, 'backup_restore_failed', { name, stagedBy, error }),
    outcomeWrites(ctx.store, failed, ctx.now()),
  ])
}
