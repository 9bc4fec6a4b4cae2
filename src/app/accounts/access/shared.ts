import { ownedBy } from '../../base/owned.ts'
import type { Context, MiddlewareHandler, Next } from 'hono'
import type * as z from 'zod'
import type { Db } from '../../../db/store.ts'
import type { PublicResource } from '../../../shared/access/public-access.ts'
import { addressKey } from '../../http/limits/address-key.ts'
import type { AppEnv, Ctx, Ports } from '../../base/context.ts'
import { answerBody, type Body, hashedBody, hashedTag } from '../../http/compression.ts'
import { describe, descriptionOf } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { type Budget, createBudget } from '../../http/limits/budget.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { invalidRequest } from '../../http/validate.ts'
import { FRESH_SECONDS, readPublicView } from './public-access.ts'
import type { PublicView } from './public-view.ts'
import { said } from '../../words/words.ts'

/** How long the service itself keeps a body if it cannot detect changes of the data. */
const FRESH_MS = FRESH_SECONDS * 1000
/** On a busy mesh, bodies are built for at most this share of the time. */
const MAKING_SHARE = 1 / 20

/** The approximate time to answer from a cached body. */
const ANSWER_MS = 0.125
/** Compressing and sending a large answer handles about this many bytes per millisecond. */
const BYTES_PER_MS = 2_000_000
/** A smaller answer costs no more than any other. */
const SMALL_BYTES = 50_000
/** The size of a compressed answer as a share of the body. */
const PACKED_SHARE = 1 / 8

/**
 * 10 answers a second to one address after a burst of 120, because a few people behind it may open the page at once;
 * 2,000 a second to all.
 */
const ANSWERING = {
  each: { burstMs: 120 * ANSWER_MS, msPerSecond: 10 * ANSWER_MS },
  all: { burstMs: 6000 * ANSWER_MS, msPerSecond: 2000 * ANSWER_MS },
  newcomers: { burstMs: 2000 * ANSWER_MS, msPerSecond: 200 * ANSWER_MS },
}
/**
 * The time for building bodies that only one caller wants: in the long run an eighth of a processor for all callers.
 */
const MAKING = {
  each: { burstMs: 200, msPerSecond: 20 },
  all: { burstMs: 1000, msPerSecond: 100 },
  newcomers: { burstMs: 250, msPerSecond: 25 },
}
/** The minimum charge for a body: lookup, hashing and caching take time too. */
const MIN_MAKING_MS = 0.5
/**
 * On the edge the clock stands still while code runs, so the time is estimated from the size of a body. Measured on
 * Node.
 */
const MADE_BYTES_PER_MS = 25_000

/** Bytes of the cached bodies. */
const MAX_CACHED = 32 * 1024 * 1024
const MAX_BODIES = 500

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
  return answering(resource, input, async (ctx, view, asked, { route, isPlain }) => {
    const key = `${route} ${JSON.stringify(asked)} ${view.key}`
    const whole = await keepBody(ctx, { key, route, isPlain }, async () =>
      wholeOf(await hashedBody(JSON.stringify(await make(ctx, view, asked)))),
    )
    return whole.body
  })
}

/** The text around the rows of an answer, and the default `limit`. */
type ListForm = { readonly open: string; readonly close: string; readonly usual: number }

/**
 * As `shared`, for a list whose `limit` selects its first rows. `make` returns as many as any request may want. They
 * are cached once and cut for each request.
 */
export function sharedList<S extends z.ZodType<{ readonly limit: number }>>(
  resource: PublicResource,
  input: S,
  form: ListForm,
  make: (ctx: Ctx, view: PublicView, asked: Omit<z.output<S>, 'limit'>) => Promise<readonly unknown[]>,
): MiddlewareHandler<AppEnv> {
  return answering(resource, input, async (ctx, view, { limit, ...asked }, { route, isPlain }) => {
    const key = `${route} ${JSON.stringify(asked)} ${view.key}`
    const whole = await keepBody(ctx, { key, route, isPlain }, async () =>
      wholeList(await make(ctx, view, asked), form),
    )
    return cut(whole, limit, form)
  })
}

type Asked = {
  readonly route: string
  /** The request is the one that all callers make. */
  readonly isPlain: boolean
}

function answering<S extends z.ZodType>(
  resource: PublicResource,
  input: S,
  bodyFor: (ctx: Ctx, view: PublicView, asked: z.output<S>, by: Asked) => Promise<Body>,
): MiddlewareHandler<AppEnv> {
  const handler: MiddlewareHandler<AppEnv> = async (c, next) => {
    const ctx = c.get('ctx')
    const view = await anonymousView(c, resource)
    if (view === null) return next()
    admitAnonymous(ctx)
    const given = { ...c.req.query(), ...c.req.param() }
    const parsed = input.safeParse(given)
    if (!parsed.success) throw invalidRequest(parsed.error)
    const isPlain = Object.keys(given).every((name) => name === 'limit')
    const body = await bodyFor(ctx, view, parsed.data, { route: c.req.routePath, isPlain })
    const answer = await answerBody(c, ctx.compressor, body, sharedHeaders(c), VARY)
    chargeAnswer(ctx, answer, body.bytes.length)
    return answer
  }
  return describe(handler, { shared: resource, revalidates: true, errors: ['rate_limited'] })
}

/** As `shared`, for a route with nothing confidential: its own handler answers. `guard` is its rule. */
export function sharedWhole(resource: PublicResource, guard: MiddlewareHandler): MiddlewareHandler<AppEnv> {
  const handler: MiddlewareHandler<AppEnv> = async (c, next) => {
    if ((await anonymousView(c, resource)) === null) return guard(c, next)
    admitAnonymous(c.get('ctx'))
    await answered(c, next)
  }
  return describe(handler, { ...descriptionOf(guard), shared: resource, errors: ['rate_limited'] })
}

async function answered(c: Context<AppEnv>, next: Next): Promise<void> {
  await next()
  c.res.headers.append('Vary', 'Cookie, Authorization')
}

/** What an anonymous request may see; null: somebody is signed in, or this resource is not public. */
async function anonymousView(c: Context<AppEnv>, resource: PublicResource): Promise<PublicView | null> {
  const ctx = c.get('ctx')
  const view = await viewOfAnonymous(c, ctx)
  return view?.permissions[resource].read === true ? view : null
}

/**
 * What the client may see of the mesh without an account. An invalid cookie counts as none; an invalid token is
 * refused.
 */
export async function viewOfAnonymous(c: Context, ctx: Ctx): Promise<PublicView | null> {
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

/** Budgets of this process only: an anonymous request neither waits for the database nor writes to it. */
type Budgets = {
  readonly answering: Budget
  readonly making: Budget
  readonly usualMs: Map<string, number>
  /** Settles when the latest body for one caller is made or refused. */
  latest: Promise<unknown>
}
const budgets = ownedBy((_buckets: Ports['buckets']): Budgets => ({
  answering: createBudget(ANSWERING),
  making: createBudget(MAKING),
  usualMs: new Map(),
  latest: Promise.resolve(),
}))
const budgetsOf = ({ buckets }: Ctx) => budgets(buckets)

/** The networks of IPv6 count as one address each. */
const callerOf = ({ ip }: Ctx) => (ip === null ? null : addressKey(ip))

/** Counts an anonymous request against its address and against all addresses together. Throws `rate_limited`. */
export function admitAnonymous(ctx: Ctx): void {
  if (ctx.preview !== undefined) return
  refuseLater(budgetsOf(ctx).answering.take(callerOf(ctx), ANSWER_MS, ctx.now()))
}

/** A large answer costs more than a small one. */
export function chargeAnswer(ctx: Ctx, { status, headers }: Response, bytes: number): void {
  if (ctx.preview !== undefined || status === 304) return
  const sent = headers.has('content-encoding') ? bytes * PACKED_SHARE : bytes
  if (sent < SMALL_BYTES) return
  budgetsOf(ctx).answering.settle(callerOf(ctx), sent / BYTES_PER_MS, ctx.now())
}

/** Charges an anonymous caller for work that an answer took, in milliseconds. */
export function chargeWork(ctx: Ctx, tookMs: number): void {
  if (ctx.preview === undefined) budgetsOf(ctx).answering.settle(callerOf(ctx), tookMs, ctx.now())
}

function refuseLater(waitMs: number): void {
  if (waitMs === 0) return
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  throw new AppError(
    'rate_limited',
    said('Too many requests without an account; try again in {retryAfter} s', { retryAfter }),
    {
      retryAfter,
    },
  )
}

/** A body, the byte offset at which each row of a list ends, and the cut that most callers want. */
type Whole = { readonly body: Body; readonly ends: readonly number[]; usual: Body | null }

const wholeOf = (body: Body): Whole => ({ body, ends: [], usual: null })

/** Rows that are serialised at a time, before other work gets its turn. */
const SLICE = 500
const utf8 = new TextEncoder()

async function wholeList(rows: readonly unknown[], { open, close }: ListForm): Promise<Whole> {
  const parts: string[] = []
  const ends: number[] = []
  let length = utf8.encode(open).length
  for (const row of rows) {
    const json = `${parts.length === 0 ? '' : ','}${JSON.stringify(row)}`
    length += lengthOf(json)
    parts.push(json)
    ends.push(length)
    if (parts.length % SLICE === 0) await nextTurn()
  }
  return { body: await hashedBody(`${open}${parts.join('')}${close}`), ends, usual: null }
}

const scratch = new Uint8Array(64 * 1024)

/** Bytes of a text in UTF-8. */
function lengthOf(text: string): number {
  const { read, written } = utf8.encodeInto(text, scratch)
  return read === text.length ? written : utf8.encode(text).length
}

/** The first rows. Only the usual cut is cached and compressed, because there may be thousands of others. */
async function cut(whole: Whole, limit: number, { close, usual }: ListForm): Promise<Body> {
  const { body, ends } = whole
  if (limit >= ends.length) return body
  if (limit === usual && whole.usual !== null) return whole.usual
  const rows = body.bytes.subarray(0, ends[limit - 1])
  const end = utf8.encode(close)
  const bytes = new Uint8Array(rows.length + end.length)
  bytes.set(rows)
  bytes.set(end, rows.length)
  const made = { bytes, etag: await hashedTag(`${body.etag} ${limit}`), packed: limit === usual ? new Map() : null }
  if (limit === usual) whole.usual = made
  return made
}

type CachedAnswer = {
  /** The revision of the database before the body was built; null: unknown. */
  readonly version: number | null
  readonly at: number
  readonly whole: Promise<Whole>
  /** One of the few bodies that all callers ask for. It is never evicted. */
  readonly isPlain: boolean
  bytes: number
  /** How long it took to build. The body is cached for at least a multiple of this time, whatever changes. */
  tookMs: number
}
const cachedAnswers = ownedBy((_db: Db) => new Map<string, CachedAnswer>())

/** The cached body of a key, built once for all callers while the data is the same. */
async function keepBody(
  ctx: Ctx,
  { key, route, isPlain }: Asked & { readonly key: string },
  make: () => Promise<Whole>,
): Promise<Whole> {
  const bodies = cachedAnswers(ctx.store.db)
  const now = ctx.now()
  const version = ctx.store.version()
  const known = bodies.get(key)
  if (known !== undefined && isFresh(known, version, now)) {
    // If it was refused to the caller who asked first, that says nothing about this one.
    const found = await known.whole.catch(nullIfRefused)
    return found ?? keepBody(ctx, { key, route, isPlain }, make)
  }
  const isCharged = !isPlain && ctx.preview === undefined
  const whole = isCharged ? makeInTurn(ctx, () => makeCharged(ctx, route, make)) : make()
  const entry: CachedAnswer = { version, at: now, whole, isPlain, bytes: 0, tookMs: FRESH_MS }
  bodies.delete(key)
  bodies.set(key, entry)
  try {
    entry.bytes = (await whole).body.bytes.length
    entry.tookMs = ctx.now() - now
  } catch (error) {
    if (bodies.get(key) === entry) bodies.delete(key)
    throw error
  }
  dropOldest(bodies)
  return whole
}

function nullIfRefused(error: unknown): null {
  if (error instanceof AppError && error.code === 'rate_limited') return null
  throw error
}

/**
 * One after the other: the time of each is then its own, not that of all which a caller wants at once. If each query is
 * a network round trip, time is not measured.
 */
function makeInTurn(ctx: Ctx, make: () => Promise<Whole>): Promise<Whole> {
  if (ctx.store.batch !== undefined) return make()
  const budgets = budgetsOf(ctx)
  const made = budgets.latest.then(make)
  budgets.latest = made.catch(() => undefined)
  return made
}

/**
 * The usual time for such a body is charged before it is built, so that many simultaneous requests cannot all pass. The
 * difference is charged afterwards.
 */
async function makeCharged(ctx: Ctx, route: string, make: () => Promise<Whole>): Promise<Whole> {
  const { making, usualMs } = budgetsOf(ctx)
  const who = callerOf(ctx)
  const usual = usualMs.get(route) ?? MIN_MAKING_MS
  refuseLater(making.take(who, usual, ctx.now()))
  const begun = performance.now()
  let bytes = 0
  try {
    const whole = await make()
    bytes = whole.body.bytes.length
    return whole
  } finally {
    // If each query is a network round trip, the elapsed time is mostly waiting and says nothing about processor time.
    const tookMs = ctx.store.batch === undefined ? performance.now() - begun : bytes / MADE_BYTES_PER_MS
    const cost = Math.max(MIN_MAKING_MS, tookMs)
    making.settle(who, cost - usual, ctx.now())
    usualMs.set(route, (usual + cost) / 2)
  }
}

function isFresh({ version, at, tookMs }: CachedAnswer, current: number | null, now: number): boolean {
  const age = now - at
  if (age < 0 || age >= FRESH_MS) return false
  return version === current || age < tookMs / MAKING_SHARE
}

function dropOldest(bodies: Map<string, CachedAnswer>): void {
  let total = 0
  for (const { bytes } of bodies.values()) total += bytes
  for (const [key, { bytes, isPlain }] of bodies) {
    if (total <= MAX_CACHED && bodies.size <= MAX_BODIES) return
    if (isPlain) continue
    bodies.delete(key)
    total -= bytes
  }
}
