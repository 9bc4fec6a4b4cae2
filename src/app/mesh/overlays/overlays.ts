import { asc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { overlayParts, overlays } from '../../../db/schema.ts'
import { type Db, prepareOnce, rememberUnchanged, type Store } from '../../../db/store.ts'
import {
  MAX_OVERLAY_BYTES,
  MAX_OVERLAY_NAME,
  MAX_OVERLAY_SHAPES,
  MAX_OVERLAYS,
  MAX_SHAPE_POINTS,
} from '../../../shared/limits.ts'
import { type ShapeFault, shapesOf } from '../../../shared/mesh/overlay.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import { audit } from '../../audit/audit.ts'
import { ownedBy } from '../../base/owned.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { type Body, hashedTag } from '../../http/compression.ts'
import { AppError } from '../../http/errors.ts'
import { timeField } from '../../http/fields.ts'
import { type Said, said } from '../../words/words.ts'

const name = z.string().trim().min(1).max(MAX_OVERLAY_NAME)
const isPublic = z.boolean().describe('Anonymous visitors see it, too, while public access shows them nodes')

export const overlaySchema = z
  .object({
    id: z.int(),
    name,
    isPublic,
    shapes: z.int().describe('Points, lines and areas in it'),
    bytes: z.int().describe('Of its GeoJSON'),
    createdAt: timeField,
    createdBy: z.string().nullable().describe('Username at that time. Null for viewers who may not change settings'),
  })
  .meta({ id: 'Overlay', description: 'Shapes that somebody put on the map' })
export const overlayListSchema = z.object({ overlays: z.array(overlaySchema) })
type Overlay = z.infer<typeof overlaySchema>

const shapes = {
  features: z
    .array(z.unknown())
    .min(1)
    .max(MAX_OVERLAY_SHAPES)
    .describe(
      'Features or geometries of GeoJSON (RFC 7946). Of their properties only name, description and colour are kept, as plain text',
    ),
  isWhole: z
    .boolean()
    .default(true)
    .describe('false: more shapes follow, and nobody sees the overlay before the last ones'),
}

export const newOverlaySchema = z.strictObject({ name, isPublic: isPublic.default(false), ...shapes })
export const moreShapesSchema = z.strictObject(shapes)
export const changedOverlaySchema = z.strictObject({ name, isPublic })

const queries = prepareOnce((db) => ({
  list: db.select().from(overlays).orderBy(asc(overlays.name), asc(overlays.id)).limit(MAX_OVERLAYS).prepare(),
  part: db
    .select({ features: overlayParts.features })
    .from(overlayParts)
    .where(sql`overlay_id = ${sql.placeholder('id')} and part = ${sql.placeholder('part')}`)
    .prepare(),
}))

type Row = typeof overlays.$inferSelect

/** Costs no query while the database has not changed. */
const readAll = rememberUnchanged(1, async (store: Store, _key: 'all'): Promise<readonly Row[]> =>
  queries(store).list.all(),
)

/** Those that the caller sees; without an account the public ones. The others count nowhere. */
export async function listOverlays({ store, viewer }: Pick<Ctx, 'store' | 'viewer'>): Promise<Overlay[]> {
  const rows = await readAll(store, 'all')
  const isEditor = viewer?.permissions.settings.write === true
  return rows.flatMap(({ isWhole, createdBy, ...row }) =>
    isWhole && (viewer !== null || row.isPublic) ? [{ ...row, createdBy: isEditor ? createdBy : null }] : [],
  )
}

/** Throws `not_found` for one that the caller does not see. */
async function demandOverlay(ctx: Pick<Ctx, 'store' | 'viewer'>, id: number): Promise<Overlay> {
  const found = (await listOverlays(ctx)).find((each) => each.id === id)
  if (found === undefined) throw new AppError('not_found')
  return found
}

/** The maximum bytes of bodies that are kept: whoever opens the map wants the same ones. */
const MAX_KEPT = 16_000_000
const bodies = ownedBy((_db: Db) => new Map<number, Promise<Body>>())

/** Whether the file of an overlay is kept, so that an answer costs little. */
export function isOverlayKept({ store }: Pick<Ctx, 'store'>, id: number): boolean {
  return bodies(store.db).has(id)
}

/** An overlay as one file of GeoJSON, each feature on a line of its own. Throws `not_found`. */
export async function readOverlay(ctx: Pick<Ctx, 'store' | 'viewer'>, id: number): Promise<Body> {
  const { bytes, createdAt } = await demandOverlay(ctx, id)
  const kept = bodies(ctx.store.db)
  // A whole overlay never changes its shapes.
  const known = kept.get(id)
  if (known !== undefined) return known
  const body = bodyOf(ctx.store, id, createdAt)
  kept.set(id, body)
  body.catch(() => kept.delete(id))
  await body
  const sizes = new Map((await readAll(ctx.store, 'all')).map((row) => [row.id, row.bytes]))
  let total = 0
  for (const other of kept.keys()) total += sizes.get(other) ?? bytes
  for (const other of kept.keys()) {
    if (total <= MAX_KEPT) break
    total -= sizes.get(other) ?? bytes
    kept.delete(other)
  }
  return body
}

const utf8 = new TextEncoder()
const OPEN = '{"type":"FeatureCollection","features":[\n'
const CLOSE = '\n]}\n'

async function bodyOf(store: Store, id: number, createdAt: number): Promise<Body> {
  const pieces: Uint8Array[] = [utf8.encode(OPEN)]
  for (let part = 0; ; part += 1) {
    const found = await queries(store).part.get({ id, part })
    if (found === undefined) break
    pieces.push(utf8.encode(`${part === 0 ? '' : ',\n'}${found.features}`))
    await nextTurn()
  }
  pieces.push(utf8.encode(CLOSE))
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return { bytes, etag: await hashedTag(`overlay ${id} ${createdAt} ${bytes.length}`), packed: new Map() }
}

const FAULTS = {
  format: (shape: number) => said('Shape {shape} is no feature of GeoJSON', { shape }),
  geometry: (shape: number) => said('Shape {shape} has a kind of geometry that the map does not know', { shape }),
  coordinates: (shape: number) => said('Shape {shape} has coordinates that are no places in the world', { shape }),
  points: (shape: number) =>
    said('Shape {shape} has more than {most} points: simplify it', { shape, most: MAX_SHAPE_POINTS }),
} satisfies Record<ShapeFault, (shape: number) => Said>

/** Shapes and features that are cleaned at a time, before other work gets its turn. */
const SLICE = 250

/** What is kept of given features. Throws `invalid_request`, as soon as there is too much. */
async function clean(features: readonly unknown[]): Promise<{ readonly text: string; readonly shapes: number }> {
  const kept: string[] = []
  let letters = 0
  for (const [index, feature] of features.entries()) {
    const found = shapesOf(feature)
    if (typeof found === 'string') throw new AppError('invalid_request', FAULTS[found](index + 1))
    // One shape of many parts can be as much as many features.
    if (kept.length + found.length > MAX_OVERLAY_SHAPES) throw tooMany()
    for (const shape of found) {
      const text = JSON.stringify(shape)
      letters += text.length
      if (letters > MAX_OVERLAY_BYTES) throw tooLarge()
      kept.push(text)
      if (kept.length % SLICE === 0) await nextTurn()
    }
    if ((index + 1) % SLICE === 0) await nextTurn()
  }
  if (kept.length === 0) throw new AppError('invalid_request', 'The file has no shape for the map')
  return { text: kept.join(',\n'), shapes: kept.length }
}

const tooLarge = () =>
  new AppError('invalid_request', said('An overlay has at most {most} bytes', { most: MAX_OVERLAY_BYTES }))

const tooMany = () =>
  new AppError('invalid_request', said('An overlay has at most {most} shapes', { most: MAX_OVERLAY_SHAPES }))

/** What never got whole is deleted after this time. */
const UNFINISHED_MS = HOUR_MS

/** Throws `invalid_request`. */
export async function createOverlay(
  ctx: SignedInCtx,
  { name, isPublic, features, isWhole }: z.infer<typeof newOverlaySchema>,
): Promise<number> {
  const { text, shapes } = await clean(features)
  const { db } = ctx.store
  const now = ctx.now()
  const unfinished = sql`select id from overlays where not is_whole and created_at < ${now - UNFINISHED_MS}`
  await ctx.store.atomic([
    db.delete(overlayParts).where(sql`overlay_id in (${unfinished})`),
    db.delete(overlays).where(sql`id in (${unfinished})`),
  ])
  const { username } = ctx.viewer.user
  const values = { name, isPublic, isWhole: false, createdAt: now, createdBy: username, shapes: 0, bytes: 0 }
  const room = sql`where (select count(*) from overlays) < ${sql.raw(String(MAX_OVERLAYS))}`
  const [made] = await insertSelect(db, overlays, values, room).returning({ id: overlays.id })
  if (made === undefined) {
    throw new AppError('invalid_request', said('At most {most} overlays are possible', { most: MAX_OVERLAYS }))
  }
  await addPart(ctx, { ...values, id: made.id }, { text, shapes, isWhole })
  return made.id
}

/** Adds to an overlay that is not whole yet. Throws `not_found`, `invalid_request`. */
export async function addShapes(
  ctx: SignedInCtx,
  id: number,
  { features, isWhole }: z.infer<typeof moreShapesSchema>,
): Promise<void> {
  const row = (await readAll(ctx.store, 'all')).find((each) => each.id === id && !each.isWhole)
  if (row === undefined) throw new AppError('not_found')
  await addPart(ctx, row, { ...(await clean(features)), isWhole })
}

type Part = { readonly text: string; readonly shapes: number; readonly isWhole: boolean }

async function addPart(ctx: SignedInCtx, before: Row, { text, shapes, isWhole }: Part): Promise<void> {
  const { db } = ctx.store
  const { id } = before
  const bytes = before.bytes + utf8.encode(text).length
  if (before.shapes + shapes > MAX_OVERLAY_SHAPES) throw tooMany()
  if (bytes > MAX_OVERLAY_BYTES) throw tooLarge()
  const part = sql<number>`(select count(*) from overlay_parts where overlay_id = ${id})`
  // One that two requests fill at once keeps what came first.
  const isSame = sql`id = ${id} and not is_whole and bytes = ${before.bytes} and shapes = ${before.shapes}`
  const change = { bytes, shapes: before.shapes + shapes, isWhole }
  const details = { change: 'added', id, name: before.name, isPublic: before.isPublic, shapes: change.shapes, bytes }
  await ctx.store.atomic([
    insertSelect(db, overlayParts, { overlayId: id, part, features: text }, sql`from overlays where ${isSame}`),
    db.update(overlays).set(change).where(isSame),
    ...(isWhole ? [audit(ctx, 'map_overlay_updated', details, { onlyIfChanged: true })] : []),
  ])
  const after = (await readAll(ctx.store, 'all')).find((each) => each.id === id)
  if (after?.bytes !== bytes || after.shapes !== change.shapes) throw new AppError('not_found')
}

/** Throws `not_found`. */
export async function changeOverlay(
  ctx: SignedInCtx,
  id: number,
  after: z.infer<typeof changedOverlaySchema>,
): Promise<Overlay> {
  const { name, isPublic } = await demandOverlay(ctx, id)
  const { db } = ctx.store
  const isOther = sql`id = ${id} and is_whole and (name <> ${after.name} or is_public <> ${after.isPublic ? 1 : 0})`
  const details = { change: 'changed', id, before: { name, isPublic }, after }
  await ctx.store.atomic([
    db.update(overlays).set(after).where(isOther),
    audit(ctx, 'map_overlay_updated', details, { onlyIfChanged: true }),
  ])
  return demandOverlay(ctx, id)
}

/** Throws `not_found`. */
export async function deleteOverlay(ctx: SignedInCtx, id: number): Promise<void> {
  const { name } = await demandOverlay(ctx, id)
  const { db } = ctx.store
  bodies(db).delete(id)
  await ctx.store.atomic([
    db.delete(overlayParts).where(eq(overlayParts.overlayId, id)),
    db.delete(overlays).where(eq(overlays.id, id)),
    audit(ctx, 'map_overlay_updated', { change: 'removed', id, name }, { onlyIfChanged: true }),
  ])
}
