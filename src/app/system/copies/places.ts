import { asc, desc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { backupCopies, copyPlaces } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { COPY_STATES, MAX_PLACES } from '../../../shared/copies.ts'
import { MAX_CONNECTION_NAME } from '../../../shared/limits.ts'
import { audit } from '../../audit/audit.ts'
import type { Ports, SignedInCtx } from '../../base/context.ts'
import { SendFailure } from '../../base/outgoing/ports.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { AppError } from '../../http/errors.ts'
import { timeField } from '../../http/fields.ts'
import type { BucketSize } from '../../http/limits/buckets.ts'
import { wordsFor } from '../../words/reader.ts'
import { BACKUP_KINDS } from '../backup/backup.ts'
import { keysSchema, readCopyKeys } from './keys.ts'
import { placeLabel } from './label.ts'
import type { Copies } from './port.ts'
import { kindField, readTarget, settingsSchema, shownSettings, type Target, whereIs } from './settings.ts'

const nameField = z
  .string()
  .min(1)
  .max(MAX_CONNECTION_NAME)
  .regex(/^[^\p{C}]*$/u, 'no control or hidden characters')
  .refine((name) => name === name.trim(), 'no spaces at the ends')

export const newPlaceSchema = z.strictObject({ kind: kindField, name: nameField, settings: settingsSchema })

export const placeChangesSchema = z.strictObject({
  enabled: z.boolean().optional(),
  settings: settingsSchema.optional().describe('A secret that is missing is kept. Where the place is never changes'),
  held: z.literal(false).optional().describe('Releases a place that a restore brought back'),
  retry: z.literal(true).optional().describe('Tries again now'),
})

export const probePlaceSchema = z.strictObject({
  kind: kindField,
  settings: settingsSchema,
  place: z.int().optional().describe('One whose secrets are used where none are given'),
})

export const probedSchema = z.object({
  problem: z.string().nullable().describe('Why no copies can be kept there; null: they can'),
  canDelete: z.boolean().describe('false: old copies stay there until somebody else deletes them'),
  isSameDisk: z.boolean().describe('A folder on the disk that also has the database'),
})

export const placeSchema = z
  .object({
    id: z.int(),
    kind: kindField,
    name: nameField,
    enabled: z.boolean(),
    where: z.string().nullable().describe('Without credentials'),
    settings: settingsSchema.nullable().describe('null: sealed under a SESSION_SECRET that this service does not have'),
    heldAt: timeField
      .nullable()
      .describe('When a restore brought it back. Until it is released, nothing is sent there'),
    failingSince: timeField.nullable(),
    failures: z.int().describe('Attempts that failed in a row'),
    problem: z.string().nullable().describe('Why the latest attempt failed, or what could not be done after it'),
    nextTryAt: timeField.nullable().describe('When the next attempt is due after a failure'),
    createdAt: timeField,
  })
  .meta({ id: 'CopyPlace', description: 'A place to which encrypted copies of backups go' })

export const copiesSchema = keysSchema.extend({
  places: z.array(placeSchema),
  copies: z
    .array(
      z.object({
        id: z.int(),
        placeId: z.int(),
        name: z.string().describe('The name of the backup'),
        kind: z.enum(BACKUP_KINDS),
        createdAt: timeField.describe('When the backup was made'),
        state: z.enum(COPY_STATES).describe('Only `made` is a copy: complete, and checked'),
        sizeBytes: z.int().nullable(),
        sha256: z.string().nullable().describe('Of the encrypted archive'),
        madeAt: timeField.nullable(),
      }),
    )
    .describe('The newest first'),
  running: z
    .object({ placeId: z.int(), name: z.string(), sentBytes: z.int(), totalBytes: z.int() })
    .nullable()
    .describe('The copy that is being made. 0 of 0 bytes while its archive is being encrypted'),
})

/** Tests of one user. */
const TESTS: BucketSize = { most: 10, everyMs: 60_000 }
const MAX_LISTED = 2000
const value = sql.placeholder

const queries = prepareOnce((db) => ({
  all: db.select().from(copyPlaces).orderBy(asc(copyPlaces.id)).prepare(),
  byId: db
    .select()
    .from(copyPlaces)
    .where(eq(copyPlaces.id, value('id')))
    .prepare(),
  byName: db
    .select()
    .from(copyPlaces)
    .where(eq(copyPlaces.name, value('name')))
    .prepare(),
  copies: db
    .select({
      id: backupCopies.id,
      placeId: backupCopies.placeId,
      name: backupCopies.name,
      kind: backupCopies.kind,
      createdAt: backupCopies.createdAt,
      state: backupCopies.state,
      sizeBytes: backupCopies.sizeBytes,
      sha256: backupCopies.sha256,
      madeAt: backupCopies.madeAt,
    })
    .from(backupCopies)
    .orderBy(desc(backupCopies.createdAt), asc(backupCopies.placeId))
    .limit(MAX_LISTED)
    .prepare(),
}))

export type PlaceRow = typeof copyPlaces.$inferSelect
/** A place with its settings opened; null: they cannot be. */
export type StoredPlace = { readonly row: PlaceRow; readonly target: Target | null }

type Needs = Pick<Ports, 'store' | 'config'>

export async function readPlaces(needs: Needs): Promise<readonly StoredPlace[]> {
  const rows = await queries(needs.store).all.all()
  return Promise.all(rows.map(async (row) => ({ row, target: await openTarget(needs, row) })))
}

async function openTarget({ config }: Needs, { name, kind, sealed }: PlaceRow): Promise<Target | null> {
  const text = await unseal(config.SESSION_SECRET, placeLabel(name), sealed)
  if (text === null) return null
  try {
    return readTarget(kind, JSON.parse(text), null)
  } catch (error) {
    // Of another version of the service: this one alone has to be entered again.
    if (error instanceof AppError) return null
    throw error
  }
}

function sealTarget({ config }: Pick<Needs, 'config'>, name: string, { settings }: Target): Promise<string> {
  return seal(config.SESSION_SECRET, placeLabel(name), JSON.stringify(settings))
}

function demandCopies({ copies }: Pick<Ports, 'copies'>): Copies {
  if (copies === null) throw new AppError('unsupported_on_this_runtime')
  return copies
}

/** Everything about copies, for administrators. */
export async function listCopies(ctx: SignedInCtx): Promise<z.infer<typeof copiesSchema>> {
  const { store } = ctx
  const running = demandCopies(ctx).running()
  const words = await wordsFor(ctx)
  const places = await readPlaces(ctx)
  return {
    ...(await readCopyKeys(store)),
    places: places.map((one) => publicPlace(one, (text) => words.translate(text))),
    copies: await queries(store).copies.all(),
    running,
  }
}

function publicPlace({ row, target }: StoredPlace, translate: (text: string) => string): z.infer<typeof placeSchema> {
  const { id, kind, name, enabled, heldAt, failingSince, failures, problem, nextTryAt, createdAt } = row
  return {
    id,
    kind,
    name,
    enabled,
    where: target === null ? null : whereIs(target),
    settings: target === null ? null : shownSettings(target),
    heldAt,
    failingSince,
    failures,
    problem: problem === null ? null : translate(problem),
    nextTryAt: failures === 0 ? null : nextTryAt,
    createdAt,
  }
}

async function find(ctx: Needs, id: number): Promise<StoredPlace> {
  const row = await queries(ctx.store).byId.get({ id })
  if (row === undefined) throw new AppError('not_found')
  return { row, target: await openTarget(ctx, row) }
}

async function answer(ctx: SignedInCtx, id: number): Promise<z.infer<typeof placeSchema>> {
  const words = await wordsFor(ctx)
  return publicPlace(await find(ctx, id), (text) => words.translate(text))
}

/** Adds a place; the newest backup is copied there at once. Throws `invalid_request`. */
export async function addPlace(ctx: SignedInCtx, input: z.output<typeof newPlaceSchema>) {
  const { store } = ctx
  const { kind, name } = input
  const copies = demandCopies(ctx)
  const target = readTarget(kind, input.settings, null)
  if ((await queries(store).byName.get({ name })) !== undefined) throw nameTaken()
  await inWords(ctx, () => copies.claim(target))
  const now = ctx.now()
  const values = {
    name,
    kind,
    enabled: true,
    sealed: await sealTarget(ctx, name, target),
    createdAt: now,
    updatedAt: now,
  }
  await store.atomic([
    insertSelect(
      store.db,
      copyPlaces,
      values,
      sql`where (select count(*) from copy_places) < ${MAX_PLACES}
        and not exists (select 1 from copy_places where name = ${name})`,
    ),
    audit(
      ctx,
      'backup_copies_updated',
      { name, kind, before: null, after: { where: whereIs(target), enabled: true, settings: 'entered' } },
      { onlyIfChanged: true },
    ),
  ])
  const made = await queries(store).byName.get({ name })
  if (made === undefined) throw new AppError('invalid_request', `At most ${MAX_PLACES} places are possible`)
  if (made.sealed !== values.sealed) throw nameTaken()
  copies.wake()
  return answer(ctx, made.id)
}

function nameTaken(): AppError {
  return new AppError('invalid_request', 'name: already used', { issues: [{ path: 'name', message: 'already used' }] })
}

/** Turns the failure of a place into a refusal with its sentence. */
async function inWords<T>(ctx: SignedInCtx, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SendFailure)) throw error
    throw new AppError('invalid_request', (await wordsFor(ctx)).translate(error.message))
  }
}

/** Changes a place. Throws `not_found`, `invalid_request`, `configuration_changed`. */
export async function changePlace(ctx: SignedInCtx, id: number, changes: z.output<typeof placeChangesSchema>) {
  const { store } = ctx
  const copies = demandCopies(ctx)
  const { row, target: before } = await find(ctx, id)
  const { name, kind } = row
  const enabled = changes.enabled ?? row.enabled
  const target = changes.settings === undefined ? before : readTarget(kind, changes.settings, before?.settings ?? null)
  const isNewTarget = JSON.stringify(target) !== JSON.stringify(before)
  if (isNewTarget && target !== null) await inWords(ctx, () => copies.claim(target))
  const sealed = target !== null && isNewTarget ? await sealTarget(ctx, name, target) : row.sealed
  const isReleased = row.heldAt !== null && changes.held === false
  const isDue = isReleased || isNewTarget || changes.retry === true || (enabled && !row.enabled)
  await store.atomic([
    store.db
      .update(copyPlaces)
      .set({
        enabled,
        sealed,
        heldAt: isReleased ? null : row.heldAt,
        nextTryAt: isDue ? 0 : sql`next_try_at`,
        updatedAt: ctx.now(),
      })
      .where(sql`id = ${id} and sealed = ${row.sealed} and enabled = ${Number(row.enabled)}`),
    audit(
      ctx,
      'backup_copies_updated',
      {
        name,
        kind,
        before: { enabled: row.enabled, ...(isReleased ? { held: 'restore' } : {}) },
        after: {
          enabled,
          ...(isNewTarget ? { settings: 'changed' } : {}),
          ...(isReleased ? { held: null } : {}),
          ...(changes.retry === true ? { retry: true } : {}),
        },
      },
      { onlyIfChanged: true },
    ),
  ])
  const after = await find(ctx, id)
  if (after.row.sealed !== sealed || after.row.enabled !== enabled) {
    throw new AppError('configuration_changed', 'Somebody else has changed this place meanwhile')
  }
  copies.wake()
  return answer(ctx, id)
}

/** Forgets a place. The copies there stay. Throws `not_found`. */
export async function deletePlace(ctx: SignedInCtx, id: number): Promise<void> {
  const copies = demandCopies(ctx)
  const { row, target } = await find(ctx, id)
  await ctx.store.atomic([
    ctx.store.db.delete(copyPlaces).where(eq(copyPlaces.id, id)),
    audit(
      ctx,
      'backup_copies_updated',
      {
        name: row.name,
        kind: row.kind,
        before: { where: target === null ? null : whereIs(target), enabled: row.enabled },
        after: null,
      },
      { onlyIfChanged: true },
    ),
  ])
  copies.wake()
}

/** Tries a place, without saving it. Throws `invalid_request`, `not_found`, `rate_limited`. */
export async function testPlace(ctx: SignedInCtx, input: z.output<typeof probePlaceSchema>) {
  const copies = demandCopies(ctx)
  const stored = input.place === undefined ? null : await find(ctx, input.place)
  if (stored !== null && stored.row.kind !== input.kind) throw new AppError('not_found')
  const target = readTarget(input.kind, input.settings, stored?.target?.settings ?? null)
  const waitMs = await ctx.buckets.take(`copies:test:${ctx.viewer.user.id}`, TESTS, ctx.now())
  if (waitMs > 0) throw new AppError('rate_limited', undefined, { retryAfter: Math.ceil(waitMs / 1000) })
  const { problem, canDelete, isSameDisk } = await copies.probe(target)
  await ctx.store.atomic([
    audit(ctx, 'backup_copies_updated', { tested: whereIs(target), kind: input.kind, ok: problem === null }),
  ])
  const words = await wordsFor(ctx)
  return { problem: problem === null ? null : words.translate(problem), canDelete, isSameDisk }
}
