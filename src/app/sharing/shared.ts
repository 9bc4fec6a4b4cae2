import type { Context, MiddlewareHandler, Next } from 'hono'
import type * as z from 'zod'
import type { Db } from '../../db/store.ts'
import type { PublicResource } from '../../shared/access/public-access.ts'
import { addressKey } from '../auth/local/login-limiter.ts'
import type { AppEnv, Ctx, Ports } from '../context.ts'
import { answerBody, type Body, hashedBody } from '../http/compression.ts'
import { describe, descriptionOf } from '../http/describe.ts'
import { AppError } from '../http/errors.ts'
import { type Buckets, type BucketSize, memoryBuckets } from '../http/limits/buckets.ts'
import { invalidRequest } from '../http/validate.ts'
import { FRESH_SECONDS, readPublicView } from './public-access.ts'
import type { PublicView } from './public-view.ts'

/** How long the service itself keeps a body if it cannot see changes of the data. */
const FRESH_MS = FRESH_SECONDS * 1000
/** On a busy mesh, bodies are built for at most this share of the time. */
const MAKING_SHARE = 1 / 20

/** Anonymous requests: a few people behind one address may open the page at once. */
const OF_ADDRESS: BucketSize = { most: 120, everyMs: 100 }
const OF_ALL: BucketSize = { most: 6000, everyMs: 0.5 }
/** Bodies built for anonymous callers besides the few that all of them request. */
const OF_MADE: BucketSize = { most: 60, everyMs: 25 }

/** Bytes of the cached bodies. */
const MOST_KEPT = 32 * 1024 * 1024
const MOST_BODIES = 500

/** Caches keep answers to requests with credentials apart from anonymous ones. */
const VARY = 'Cookie, Authorization, '

/**
 * Runs before the access rule and answers anonymous callers itself, while public access shows them `resource`: with
 * JSON that `make` builds from allow-listed fields, one body for all identical requests. `input` selects the query and
 * path parameters that count; others are refused. Throws `rate_limited`, `invalid_request`, and whatever `make` throws.
 */
export function shared<S extends z.ZodType>(
  resource: PublicResource,
  input: S,
  make: (ctx: Ctx, view: PublicView, asked: z.output<S>) => Promise<unknown>,
): MiddlewareHandler<AppEnv> {
  const handler: MiddlewareHandler<AppEnv> = async (c, next) => {
    const ctx = c.get('ctx')
    const view = await strangerView(c, resource)
    if (view === null) return next()
    await admitStranger(ctx)
    const given = { ...c.req.query(), ...c.req.param() }
    const parsed = input.safeParse(given)
    if (!parsed.success) throw invalidRequest(parsed.error)
    const key = `${c.req.routePath} ${JSON.stringify(parsed.data)} ${view.key}`
    const isPlain = Object.keys(given).length === 0
    const body = await keepBody(ctx, key, isPlain, () => make(ctx, view, parsed.data))
    return answerBody(c, ctx.compressor, body, sharedHeaders(c), VARY)
  }
  return describe(handler, { shared: resource, errors: ['rate_limited'] })
}

/** As `shared`, for a route without anything confidential: its own handler answers. `guard` is its rule. */
export function sharedWhole(resource: PublicResource, guard: MiddlewareHandler): MiddlewareHandler<AppEnv> {
  const handler: MiddlewareHandler<AppEnv> = async (c, next) => {
    if ((await strangerView(c, resource)) === null) return guard(c, next)
    await admitStranger(c.get('ctx'))
    await answered(c, next)
  }
  return describe(handler, { ...descriptionOf(guard), shared: resource, errors: ['rate_limited'] })
}

async function answered(c: Context<AppEnv>, next: Next): Promise<void> {
  await next()
  c.res.headers.append('Vary', 'Cookie, Authorization')
}

/** What an anonymous request may see; null: somebody is signed in, or nothing of this is shown. */
async function strangerView(c: Context<AppEnv>, resource: PublicResource): Promise<PublicView | null> {
  const ctx = c.get('ctx')
  const view = await viewOfStranger(c, ctx)
  return view?.permissions[resource].read === true ? view : null
}

/**
 * What the client may see of the mesh without an account: an invalid cookie counts as none, an invalid token does not.
 */
export async function viewOfStranger(c: Context, ctx: Ctx): Promise<PublicView | null> {
  if (ctx.viewer !== null) return null
  if (ctx.preview !== undefined) return ctx.preview
  return c.req.header('authorization') === undefined ? readPublicView(ctx) : null
}

/** Only an answer to a request without credentials may be shared. */
function sharedHeaders(c: Context<AppEnv>): Record<string, string> {
  const { preview, config } = c.get('ctx')
  const isBare = preview === undefined && c.req.header('cookie') === undefined
  return {
    'Cache-Control': isBare ? `public, max-age=${FRESH_SECONDS}` : 'no-store',
    ...(config.PUBLIC_INDEXING ? {} : { 'X-Robots-Tag': 'noindex' }),
  }
}

/** Only in this process: an anonymous request neither waits for the database nor writes to it. */
const limits = new WeakMap<Ports['buckets'], Buckets>()

function limitsOf({ buckets }: Ctx): Buckets {
  const known = limits.get(buckets) ?? memoryBuckets()
  limits.set(buckets, known)
  return known
}

/** Counts an anonymous request, against its address and against all of them together. Throws `rate_limited`. */
export async function admitStranger(ctx: Ctx): Promise<void> {
  if (ctx.preview !== undefined) return
  const limits = limitsOf(ctx)
  // The address first: a single one cannot use up the total.
  if (ctx.ip !== null) refuseLater(await limits.take(`address:${addressKey(ctx.ip)}`, OF_ADDRESS, ctx.now()))
  refuseLater(await limits.take('all', OF_ALL, ctx.now()))
}

function refuseLater(waitMs: number): void {
  if (waitMs === 0) return
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  throw new AppError('rate_limited', `Too many requests without an account; try again in ${retryAfter} s`, {
    retryAfter,
  })
}

type Kept = {
  /** The revision of the database before the body was built; null: unknown. */
  readonly version: number | null
  readonly at: number
  readonly body: Promise<Body>
  bytes: number
  /** How long it took to build; it is kept at least for a while, whatever changes. */
  tookMs: number
}
const kept = new WeakMap<Db, Map<string, Kept>>()

/** The body for a key, built once for all callers while the data is the same. */
async function keepBody(ctx: Ctx, key: string, isPlain: boolean, make: () => Promise<unknown>): Promise<Body> {
  const bodies = kept.get(ctx.store.db) ?? new Map<string, Kept>()
  kept.set(ctx.store.db, bodies)
  const now = ctx.now()
  const version = ctx.store.version()
  const known = bodies.get(key)
  if (known !== undefined && isFresh(known, version, now)) return known.body
  if (!isPlain && ctx.preview === undefined) refuseLater(await limitsOf(ctx).take('made', OF_MADE, now))
  const entry: Kept = {
    version,
    at: now,
    body: make().then((value) => hashedBody(JSON.stringify(value))),
    bytes: 0,
    tookMs: FRESH_MS,
  }
  bodies.delete(key)
  bodies.set(key, entry)
  try {
    entry.bytes = (await entry.body).bytes.length
    entry.tookMs = ctx.now() - now
  } catch (error) {
    if (bodies.get(key) === entry) bodies.delete(key)
    throw error
  }
  dropOldest(bodies)
  return entry.body
}

function isFresh({ version, at, tookMs }: Kept, current: number | null, now: number): boolean {
  const age = now - at
  if (age < 0 || age >= FRESH_MS) return false
  return version === current || age < tookMs / MAKING_SHARE
}

function dropOldest(bodies: Map<string, Kept>): void {
  let total = 0
  for (const { bytes } of bodies.values()) total += bytes
  for (const [key, { bytes }] of bodies) {
    if (total <= MOST_KEPT && bodies.size <= MOST_BODIES) return
    bodies.delete(key)
    total -= bytes
  }
}
