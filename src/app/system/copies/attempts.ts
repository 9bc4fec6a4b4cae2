import { and, asc, eq, ne, sql } from 'drizzle-orm'
import * as z from 'zod'
import { backupCopies, copyPlaces } from '../../../db/schema.ts'
import { type Db, prepareOnce } from '../../../db/store.ts'
import { audit, type AuditContext } from '../../audit/audit.ts'
import { backOff } from '../../../shared/back-off.ts'
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import type { Backup } from '../backup/backup.ts'
import type { PlaceRow } from './places.ts'

// What the service records about its attempts to copy backups.

export const RETRIES = { firstMs: MINUTE_MS, mostMs: 6 * HOUR_MS }

export type CopyRow = typeof backupCopies.$inferSelect
export type Copied = Pick<Backup, 'name' | 'kind' | 'createdAt'>

const uploadSchema = z.object({ id: z.string(), sha256: z.string(), etags: z.array(z.string()).readonly() })
type StoredUpload = z.infer<typeof uploadSchema>

const queries = prepareOnce((db) => ({
  ofPlace: db
    .select()
    .from(backupCopies)
    .where(eq(backupCopies.placeId, sql.placeholder('placeId')))
    .orderBy(asc(backupCopies.createdAt))
    .prepare(),
}))

export async function copiesAt(ctx: Pick<AuditContext, 'store'>, placeId: number): Promise<CopyRow[]> {
  return queries(ctx.store).ofPlace.all({ placeId })
}

/** The upload that an interrupted attempt left; null: none. */
export function uploadOf(text: string | null): StoredUpload | null {
  return text === null ? null : (uploadSchema.safeParse(JSON.parse(text)).data ?? null)
}

/** An attempt begins: from now on something unfinished may be at the place. */
export async function noteSending({ store }: AuditContext, placeId: number, { name, kind, createdAt }: Copied) {
  await store.db
    .insert(backupCopies)
    .values({ placeId, name, kind, createdAt, state: 'sending' })
    .onConflictDoUpdate({ target: [backupCopies.placeId, backupCopies.name], set: { state: 'sending', madeAt: null } })
    .run()
}

export async function keepUpload({ store }: AuditContext, placeId: number, name: string, upload: StoredUpload | null) {
  await store.db
    .update(backupCopies)
    .set({ upload: upload === null ? null : JSON.stringify(upload) })
    .where(at(placeId, name))
    .run()
}

const at = (placeId: number, name: string) => and(eq(backupCopies.placeId, placeId), eq(backupCopies.name, name))

/** The copy is there, and was checked. `place` as it was read: its state is replaced. */
export async function recordMade(
  ctx: AuditContext,
  place: Pick<PlaceRow, 'id' | 'name'>,
  name: string,
  { size, sha256 }: { readonly size: number; readonly sha256: string },
): Promise<void> {
  const { store } = ctx
  const now = ctx.now()
  await store.atomic([
    store.db
      .update(backupCopies)
      .set({ state: 'made', sizeBytes: size, sha256, madeAt: now, upload: null })
      .where(at(place.id, name)),
    audit(ctx, 'backup_copied', { name, place: place.name, sizeBytes: size, sha256 }, { onlyIfChanged: true }),
    store.db
      .update(copyPlaces)
      .set({ failures: 0, failingSince: null, problem: null, nextTryAt: 0 })
      .where(eq(copyPlaces.id, place.id)),
  ])
}

/** An attempt failed. Only the first one of several has an entry in the audit log. */
export async function recordFailed(ctx: AuditContext, place: PlaceRow, name: string, problem: string): Promise<void> {
  const { store } = ctx
  const now = ctx.now()
  const { id, failures } = place
  const failed = store.db
    .update(copyPlaces)
    .set({
      failures: sql`failures + 1`,
      failingSince: sql`coalesce(failing_since, ${now})`,
      problem,
      nextTryAt: now + backOff(failures, RETRIES),
    })
    .where(eq(copyPlaces.id, id))
  const entry = audit(ctx, 'backup_copy_failed', { name, place: place.name, error: problem }, { onlyIfChanged: true })
  await store.atomic(failures === 0 ? [failed, entry] : [failed])
}

/** What could not be done after a copy was made. */
export async function noteProblem({ store }: AuditContext, placeId: number, problem: string | null): Promise<void> {
  await store.db
    .update(copyPlaces)
    .set({ problem })
    .where(and(eq(copyPlaces.id, placeId), eq(copyPlaces.failures, 0)))
    .run()
}

/** Copies that were made and are not there any more. */
export async function noteMissing({ store }: AuditContext, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  await store.db
    .update(backupCopies)
    .set({ state: 'missing' })
    .where(and(ne(backupCopies.state, 'missing'), inJson(ids)))
    .run()
}

/** Copies that were missing, and are there as they were made. */
export async function noteBack({ store }: AuditContext, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  await store.db
    .update(backupCopies)
    .set({ state: 'made' })
    .where(and(eq(backupCopies.state, 'missing'), inJson(ids)))
    .run()
}

const inJson = (ids: readonly number[]) =>
  sql`${backupCopies.id} in (select value from json_each(${JSON.stringify(ids)}))`

/** A copy was deleted by the rule that keeps some of each day, week and month. */
export async function recordPruned(ctx: AuditContext, place: Pick<PlaceRow, 'name'>, copy: CopyRow): Promise<void> {
  await ctx.store.atomic([
    forget(ctx.store.db, copy.id),
    audit(ctx, 'backup_deleted', { name: copy.name, place: place.name, reason: 'retention' }, { onlyIfChanged: true }),
  ])
}

/** Nothing of it is left: an interrupted attempt was cleaned, or its loss has been shown long enough. */
export async function forgetCopies({ store }: AuditContext, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await store.db.delete(backupCopies).where(inJson(ids)).run()
}

function forget(db: Db, id: number) {
  return db.delete(backupCopies).where(eq(backupCopies.id, id))
}
