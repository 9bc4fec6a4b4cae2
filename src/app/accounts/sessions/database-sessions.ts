import type { Counters, SessionStore } from './store.ts'
import { and, desc, eq, gt, gte, inArray, lt, lte, ne, or, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { rateLimits, sessions } from '../../../db/schema.ts'
import {
  batchWith,
  changeAndRead,
  prepareOnce,
  type Reading,
  rememberUnchanged,
  type Store,
} from '../../../db/store.ts'
import { eachTurn, inSlices } from '../../base/pacing/slices.ts'

const queries = prepareOnce((db) => ({
  find: db
    .select()
    .from(sessions)
    .where(eq(sessions.tokenHash, sql.placeholder('tokenHash')))
    .prepare(),
  list: db
    .select()
    .from(sessions)
    .where(and(eq(sessions.userId, sql.placeholder('userId')), gt(sessions.expiresAt, sql.placeholder('now'))))
    .orderBy(desc(sessions.lastSeenAt), desc(sessions.id))
    .prepare(),
}))

const findByHash = rememberUnchanged(
  1000,
  async (store, tokenHash: string) => (await queries(store).find.get({ tokenHash })) ?? null,
)

const removedId = { id: sessions.id }

/** Rows that one statement of a sweep deletes: a few milliseconds. */
const SWEPT_ROWS = 1000

const SLICES = { full: SWEPT_ROWS, pause: eachTurn }

/**
 * Stores sessions in the database itself, and also the counters unless they are kept elsewhere. This store runs
 * everywhere.
 */
export function databaseSessions(store: Store, counters: Counters = databaseCounters(store)): SessionStore {
  const { db } = store
  return {
    ...counters,
    isInDatabase: true,
    insert: async (session) => {
      const { userId, lastSeenAt: now } = session
      return changeAndRead(store, [db.insert(sessions).values(session)], queries(store).list, { userId, now })
    },
    find: async (tokenHash, now) => {
      const session = await findByHash(store, tokenHash)
      return session !== null && session.expiresAt > now ? session : null
    },
    extend: async (tokenHash, lastSeenAt, expiresAt) => {
      await db.update(sessions).set({ lastSeenAt, expiresAt }).where(eq(sessions.tokenHash, tokenHash)).run()
    },
    remove: async (tokenHash) => {
      const removed = await db.delete(sessions).where(eq(sessions.tokenHash, tokenHash)).returning(removedId).all()
      return removed.length > 0
    },
    removeForUser: async (userId, except) => {
      const others = except === undefined ? undefined : ne(sessions.tokenHash, except)
      const removed = await db
        .delete(sessions)
        .where(and(eq(sessions.userId, userId), others))
        .returning(removedId)
        .all()
      return removed.length
    },
    list: async (userId, now) => queries(store).list.all({ userId, now }),
    sweep: async (now) => {
      const expired = db.select(removedId).from(sessions).where(lte(sessions.expiresAt, now)).limit(SWEPT_ROWS)
      await inSlices(() => db.delete(sessions).where(inArray(sessions.id, expired)).returning(removedId).all(), SLICES)
      await counters.sweep(now)
    },
  }
}

type Most = { readonly key: string; readonly most: number }

const countSchema = z.object({ count: z.int(), resetAt: z.int() })

/** Counters in a table `rate_limits`, of any database. */
export function databaseCounters({ db, batch }: Pick<Store, 'db' | 'batch'>): Counters {
  const { key: keyColumn } = rateLimits
  /** Counts only if no count `before` it is above its `most`. */
  const hit = (key: string, before: readonly Most[], windowMs: number, now: number) => {
    // A window that ends later than one that begins now was opened by a clock that was ahead.
    const expired = sql`(${rateLimits.expiresAt} <= ${now} or ${rateLimits.expiresAt} > ${now + 2 * windowMs})`
    const full = before.map((one) => sql`("key" = ${one.key} and "count" > ${one.most})`)
    const isFull = full.length === 0 ? sql`false` : sql`exists (select 1 from ${rateLimits} where ${or(...full)})`
    return insertSelect(db, rateLimits, { key, count: 1, expiresAt: now + windowMs }, sql`where not ${isFull}`)
      .onConflictDoUpdate({
        target: keyColumn,
        set: {
          count: sql`case when ${expired} then 1 else ${rateLimits.count} + 1 end`,
          expiresAt: sql`case when ${expired} then ${now + windowMs} else ${rateLimits.expiresAt} end`,
        },
      })
      .returning({ count: rateLimits.count, resetAt: rateLimits.expiresAt })
  }
  const forgive = (key: string, how: 'all' | 'one') => {
    const count = sql`max(0, ${rateLimits.count} - 1)`
    const one = eq(keyColumn, key)
    return how === 'all' ? db.delete(rateLimits).where(one) : db.update(rateLimits).set({ count }).where(one)
  }
  const together = batch && {
    hits: async <T>(
      limits: readonly Most[],
      window: { readonly ms: number; readonly now: number },
      reading: Reading<T> | null,
    ) => {
      const [first, ...others] = limits.map(({ key }, i) => hit(key, limits.slice(0, i), window.ms, window.now))
      if (first === undefined) return { counts: [], rows: null }
      const hits = [first, ...others] as const
      const { answers, rows } =
        reading === null ? { answers: await batch(hits), rows: null } : await batchWith(batch, hits, reading)
      return { counts: z.array(z.array(countSchema)).parse(answers).flat(), rows }
    },
    forgives: async (all: readonly { readonly key: string; readonly how: 'all' | 'one' }[]) => {
      const [first, ...others] = all.map(({ key, how }) => forgive(key, how))
      if (first !== undefined) await batch([first, ...others])
    },
  }
  return {
    ...together,
    hit: async (key, windowMs, now) => hit(key, [], windowMs, now).get(),
    forgive: async (key, how) => {
      await forgive(key, how).run()
    },
    clear: async (prefix) => {
      // A range, so that the key's index finds it: no character comes after the last one.
      await db
        .delete(rateLimits)
        .where(and(gte(rateLimits.key, prefix), lt(rateLimits.key, `${prefix}\u{10ffff}`)))
        .run()
    },
    sweep: async (now) => {
      const { key } = rateLimits
      const expired = db.select({ key }).from(rateLimits).where(lte(rateLimits.expiresAt, now)).limit(SWEPT_ROWS)
      await inSlices(() => db.delete(rateLimits).where(inArray(key, expired)).returning({ key }).all(), SLICES)
    },
  }
}
