import type { Context } from 'hono'
import { and, eq, gt, lte, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../db/insert-select.ts'
import { idempotencyKeys } from '../../db/schema.ts'
import { bind, NOT_FLUSHED, prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { DAY_MS } from '../../shared/time.ts'
import type { Ports, SignedIn } from '../base/context.ts'
import { keyedHash } from '../base/keyed-hash.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import { describing } from './describe.ts'
import { AppError } from './errors.ts'

/** How long a key is remembered. */
const LIFETIME_MS = DAY_MS
/** Keys forgotten in one transaction. */
const SLICE_ROWS = 1000

const FORM = '1–255 visible ASCII characters'

const keySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, FORM)
  .describe('Repeating the key within a day creates nothing and returns what the first request created')

/** Documents that a route honours `Idempotency-Key`. */
export const takesIdempotencyKey = describing({
  request: { part: 'header', schema: z.object({ 'Idempotency-Key': keySchema.optional() }) },
  errors: ['idempotency_key_reused'],
})

/** Field of answers with a secret that is shown once. */
export const secretShownField = z
  .boolean()
  .describe(
    'Whether this response contains a secret that is shown only once. A repeat with the same Idempotency-Key does not: the secret was in the first response',
  )

/** A request with an Idempotency-Key. */
export type Keyed = {
  readonly userId: number
  readonly key: string
  /** Method and path. */
  readonly route: string
  /**
   * Hashes of the body, one under each SESSION_SECRET; new keys are stored with the first. They are keyed because a
   * body may contain a password.
   */
  readonly hashes: readonly string[]
}

/**
 * The key of a request, and its validated body. Null: no key. Throws `invalid_request` for an invalid one.
 * Decision: docs/decisions/repeated-requests.md
 */
export async function readKeyed(c: Context<SignedIn>, body: unknown): Promise<Keyed | null> {
  const header = c.req.header('idempotency-key')
  if (header === undefined) return null
  if (!keySchema.safeParse(header).success) {
    throw new AppError('invalid_request', `Idempotency-Key: ${FORM}`, {
      issues: [{ path: 'Idempotency-Key', message: FORM }],
    })
  }
  const { config, viewer } = c.var.ctx
  const text = sortedJson(body)
  const hashes = await Promise.all(config.SESSION_SECRET.map((secret) => keyedHash(`idempotency:${secret}`, text)))
  return { userId: viewer.user.id, key: header, route: `${c.req.method} ${c.req.path}`, hashes }
}

/** JSON in which the order of fields does not matter. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    each instanceof Object && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )
}

/**
 * The statements that remember a key, at the end of the atomic step that creates something. `id` identifies the created
 * object for this route. If it is null because nothing was created, no key is stored.
 */
export type Remember = (id: SQL) => Statement[]

type Once<T> = {
  readonly create: (remember: Remember) => Promise<T>
  /** The answer to a repeat. Throws if the created object is gone; it is not created again. */
  readonly repeat: (id: number) => Promise<T>
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  byKey: db
    .select({
      route: idempotencyKeys.route,
      requestHash: idempotencyKeys.requestHash,
      createdId: idempotencyKeys.createdId,
    })
    .from(idempotencyKeys)
    .where(
      and(
        eq(idempotencyKeys.userId, value('userId')),
        eq(idempotencyKeys.key, value('key')),
        gt(idempotencyKeys.createdAt, value('since')),
      ),
    )
    .prepare(),
  forget: db
    .delete(idempotencyKeys)
    .where(
      sql`rowid in (select rowid from idempotency_keys where created_at <= ${value('before')} limit ${value('rows')})`,
    )
    .returning({ key: idempotencyKeys.key })
    .prepare(),
}))

type Needs = Pick<Ports, 'store' | 'now'>

/**
 * Creates something once for each Idempotency-Key of a user: a repeat of the request gets what the first one created,
 * and of several simultaneous ones, one creates it. Without a key, each request creates. Throws
 * `idempotency_key_reused` for a different request with the same key, and as `create` and `repeat`. A refused request
 * leaves its key unused.
 */
export async function createOnce<T>(ctx: Needs, keyed: Keyed | null, { create, repeat }: Once<T>): Promise<T> {
  if (keyed === null) return create(() => [])
  const acknowledge = async (id: number) => {
    await ctx.store.settled?.()
    return repeat(id)
  }
  const earlier = await findEarlier(ctx, keyed)
  if (earlier !== null) return acknowledge(earlier)
  try {
    return await create((id) => remember(ctx, keyed, id))
  } catch (error) {
    // Two simultaneous requests had the same key. The primary key let one win, and both get what it created.
    // What was made and not flushed is not acknowledged, although it is found.
    const winner = Object(error).code === NOT_FLUSHED ? null : await findEarlier(ctx, keyed)
    if (winner === null) throw error
    return acknowledge(winner)
  }
}

async function findEarlier({ store, now }: Needs, { userId, key, route, hashes }: Keyed): Promise<number | null> {
  const found = await queries(store).byKey.get({ userId, key, since: now() - LIFETIME_MS })
  if (found === undefined) return null
  if (found.route !== route || !hashes.includes(found.requestHash)) throw new AppError('idempotency_key_reused')
  return found.createdId
}

function remember({ store, now }: Needs, { userId, key, route, hashes: [hash = ''] }: Keyed, id: SQL): Statement[] {
  const before = now() - LIFETIME_MS
  const { userId: ofUser, key: named, createdAt } = idempotencyKeys
  return [
    // Its own, even if more old keys wait than are deleted here.
    store.db.delete(idempotencyKeys).where(and(eq(ofUser, userId), eq(named, key), lte(createdAt, before))),
    bind(queries(store).forget, { before, rows: SLICE_ROWS }),
    insertSelect(
      store.db,
      idempotencyKeys,
      { userId, key, route, requestHash: hash, createdId: sql`made.id`, createdAt: now() },
      sql`from (select ${id} as id) made where made.id is not null`,
    ),
  ]
}

/** Deletes the keys that are no longer remembered. Returns their number. */
export async function forgetKeys(store: Store, now: number, pause: Pause): Promise<number> {
  const { forget } = queries(store)
  const before = now - LIFETIME_MS
  return (await inSlices((rows) => forget.all({ before, rows }), { full: SLICE_ROWS, pause })).rows
}
