import { and, eq, like, sql } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../../db/schema.ts'
import { prepareOnce, rememberUnchanged, type Store } from '../../../db/store.ts'
import {
  EMBED_LAYERS,
  EMBED_PROFILE_ID,
  MAX_EMBED_ORIGINS,
  MAX_EMBED_PROFILES,
  MAX_EMBED_ZOOM,
  MAX_FRAME,
  MIN_FRAME,
} from '../../../shared/access/embed-profile.ts'
import { MAX_FRAME_NAME } from '../../../shared/limits.ts'
import { audit } from '../../audit/audit.ts'
import type { Config } from '../../config/config.ts'
import { isOrigin } from '../../config/secure-url.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { said } from '../../words/words.ts'
import { stillAdmin } from '../users/still-admin.ts'
import { mayEmbed } from './public-access.ts'

const pixels = z.int().min(MIN_FRAME).max(MAX_FRAME)

const VIEW = {
  center: z
    .strictObject({ latitude: z.number().min(-90).max(90), longitude: z.number().min(-180).max(180) })
    .nullable()
    .describe('What the map shows first; null: all nodes'),
  zoom: z.number().min(0).max(MAX_EMBED_ZOOM).nullable().describe('From 0, the world; null: the usual one'),
  layers: z
    .array(z.enum(EMBED_LAYERS))
    .max(EMBED_LAYERS.length)
    .refine((layers) => new Set(layers).size === layers.length, 'each layer once')
    .describe('What the map shows beside the nodes'),
}

export const embedProfileBody = z.strictObject({
  ...VIEW,
  name: z.string().trim().min(1).max(MAX_FRAME_NAME),
  origins: z
    .array(z.string().max(255).refine(isOrigin, 'an origin such as https://town.example.org'))
    .min(1)
    .max(MAX_EMBED_ORIGINS)
    .refine((origins) => new Set(origins).size === origins.length, 'each origin once')
    .describe('The sites that may show the frame: https, host and port, and nothing else'),
  width: pixels,
  height: pixels,
})

export const embedProfileSchema = embedProfileBody
  .extend({ id: z.string() })
  .meta({ id: 'EmbedProfile', description: 'A frame that other sites may show' })

type EmbedProfile = z.infer<typeof embedProfileSchema>
type Body = z.infer<typeof embedProfileBody>

export const embedListSchema = z.object({
  profiles: z.array(embedProfileSchema),
  limit: z.array(z.string()).nullable().describe('EMBED_ORIGINS: only these may be named; null: any'),
})

// One row each, so that two administrators who change different ones lose nothing.
const PREFIX = 'embedProfile.'
const keyOf = (id: string) => PREFIX + id

const queries = prepareOnce((db) => ({
  one: db
    .select({ value: settings.value })
    .from(settings)
    .where(eq(settings.key, sql.placeholder('key')))
    .prepare(),
}))

function parse(id: string, value: string | undefined): EmbedProfile | null {
  const parsed = value === undefined ? null : embedProfileBody.safeParse(JSON.parse(value))
  return parsed?.success === true ? { id, ...parsed.data } : null
}

async function read(store: Store, id: string): Promise<EmbedProfile | null> {
  return parse(id, (await queries(store).one.get({ key: keyOf(id) }))?.value)
}

/** Costs no query while the database has not changed. */
const readKept = rememberUnchanged(MAX_EMBED_PROFILES, read)

function limitOf({ EMBED_ORIGINS: limit }: Pick<Config, 'EMBED_ORIGINS'>): readonly string[] | null {
  return limit.length === 0 ? null : limit
}

/** A page of `/embed`: the sites that may show it, and the query to go to first; null: none. */
export type Frame = { readonly origins: readonly string[]; readonly redirect: string | null }

/**
 * The page of `/embed` at an address with this query; null: there is none. Without a profile, it is for the sites of
 * EMBED_ORIGINS. A profile names its own, of which EMBED_ORIGINS may forbid some, and this site may preview it. How its
 * map looks comes from the address, so an address that does not say it is led to one that does.
 */
export async function findFrame(
  ctx: Pick<Ctx, 'store' | 'now' | 'config'>,
  query: URLSearchParams,
): Promise<Frame | null> {
  if (!(await mayEmbed(ctx))) return null
  const id = query.get('profile')
  if (id === null) return { origins: ctx.config.EMBED_ORIGINS, redirect: null }
  const profile = EMBED_PROFILE_ID.test(id) ? await readKept(ctx.store, id) : null
  if (profile === null) return null
  const limit = limitOf(ctx.config)
  const origins = ["'self'", ...profile.origins.filter((origin) => limit?.includes(origin) ?? true)]
  const isSaid = ['center', 'zoom', 'layers'].some((name) => query.has(name))
  return { origins, redirect: isSaid ? null : queryOf(query, profile) }
}

function queryOf(asked: URLSearchParams, { center, zoom, layers }: EmbedProfile): string {
  const query = new URLSearchParams(asked)
  if (center !== null) query.set('center', `${center.latitude},${center.longitude}`)
  if (zoom !== null) query.set('zoom', String(zoom))
  query.set('layers', layers.join(','))
  return `?${query.toString()}`
}

/** Relative, because a proxy may publish the service under a path. */
export function redirectTo(query: string): Response {
  return new Response(null, { status: 302, headers: { location: query, 'cache-control': 'no-store' } })
}

/** All profiles by name. */
export async function listEmbedProfiles({ store, config }: Pick<Ctx, 'store' | 'config'>) {
  const rows = await store.db
    .select({ key: settings.key, value: settings.value })
    .from(settings)
    .where(like(settings.key, `${PREFIX}%`))
    .all()
  const profiles = rows
    .flatMap(({ key, value }) => parse(key.slice(PREFIX.length), value) ?? [])
    .toSorted((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id))
  const limit = limitOf(config)
  return { profiles, limit: limit === null ? null : [...limit] }
}

/** Throws `invalid_request` if EMBED_ORIGINS does not allow an origin, or there are too many profiles. */
export async function createEmbedProfile(ctx: Ctx, body: Body): Promise<EmbedProfile> {
  demandAllowed(ctx.config, body)
  const { profiles } = await listEmbedProfiles(ctx)
  if (profiles.length >= MAX_EMBED_PROFILES) {
    throw new AppError(
      'invalid_request',
      said('There are {n} frames already: delete one first', { n: profiles.length }),
    )
  }
  const id = crypto.randomUUID().replaceAll('-', '').slice(-12)
  await ctx.store.atomic([
    audit(ctx, 'embed_profile_updated', { id, before: null, after: body }),
    ctx.store.db.insert(settings).values({ key: keyOf(id), value: JSON.stringify(body), updatedAt: ctx.now() }),
    ...stillAdmin(ctx),
  ])
  return { id, ...body }
}

/** Applies from the next request. Throws `not_found`, `invalid_request`. */
export async function updateEmbedProfile(ctx: Ctx, id: string, body: Body): Promise<EmbedProfile> {
  demandAllowed(ctx.config, body)
  const { id: _, ...before } = await demand(ctx.store, id)
  const value = JSON.stringify(body)
  const isOther = and(eq(settings.key, keyOf(id)), sql`${settings.value} <> ${value}`)
  await ctx.store.atomic([
    audit(ctx, 'embed_profile_updated', { id, before, after: body }, { onlyIf: exists(isOther) }),
    ctx.store.db.update(settings).set({ value, updatedAt: ctx.now() }).where(isOther),
    ...stillAdmin(ctx),
  ])
  return { id, ...body }
}

/** Its frames show nothing from the next request on. Throws `not_found`. */
export async function deleteEmbedProfile(ctx: Ctx, id: string): Promise<void> {
  const { id: _, ...before } = await demand(ctx.store, id)
  const own = eq(settings.key, keyOf(id))
  await ctx.store.atomic([
    audit(ctx, 'embed_profile_updated', { id, before, after: null }, { onlyIf: exists(own) }),
    ctx.store.db.delete(settings).where(own),
    ...stillAdmin(ctx),
  ])
}

const exists = (where: ReturnType<typeof and>) => sql`exists (select 1 from ${settings} where ${where})`

async function demand(store: Store, id: string): Promise<EmbedProfile> {
  const found = EMBED_PROFILE_ID.test(id) ? await read(store, id) : null
  if (found === null) throw new AppError('not_found')
  return found
}

function demandAllowed(config: Pick<Config, 'EMBED_ORIGINS'>, { origins }: Body): void {
  const limit = limitOf(config)
  const origin = origins.find((one) => limit !== null && !limit.includes(one))
  if (origin !== undefined)
    throw new AppError('invalid_request', said('EMBED_ORIGINS does not allow {origin}', { origin }))
}
