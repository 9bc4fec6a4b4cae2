import type { Counters, SessionStore } from './store.ts'
import { and, desc, eq, gt, gte, inArray, lt, lte, ne, sql } from 'drizzle-orm'
import { rateLimits, sessions } from '../../../db/schema.ts'
import { prepareOnce, rememberUnchanged, type Store } from '../../../db/store.ts'
import { eachTurn, inSlices } from '../../upkeep/slices.ts'

const queries = prepareOnce((db) => ({
  find: db
    .select()
    .from(sessions)
    .where(eq(sessions.tokenHash, sql.placeholder('tokenHash')))
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

/** Sessions in the database itself, and the counters too unless they are kept elsewhere: the store that runs everywhere. */
export function databaseSessions(store: Store, counters: Counters = databaseCounters(store)): SessionStore {
  const { db } = store
  return {
    ...counters,
    isInDatabase: true,
    insert: async (session) => {
      await db.insert(sessions).values(session).run()
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
    list: async (userId, now) =>
      db
        .select()
        .from(sessions)
        .where(and(eq(sessions.userId, userId), gt(sessions.expiresAt, now)))
        .orderBy(desc(sessions.lastSeenAt), desc(sessions.id))
        .all(),
    sweep: async (now) => {
      const expired = db.select(removedId).from(sessions).where(lte(sessions.expiresAt, now)).limit(SWEPT_ROWS)
      await inSlices(() => db.delete(sessions).where(inArray(sessions.id, expired)).returning(removedId).all(), SLICES)
      await counters.sweep(now)
    },
  }
}

/** Counters in a table `rate_limits` of any database. */
export function databaseCounters({ db }: Pick<Store, 'db'>): Counters {
  return {
    hit: async (key, windowMs, now) => {
      // A window that ends later than one beginning now was opened by a clock that was ahead.
      const expired = sql`(${rateLimits.expiresAt} <= ${now} or ${rateLimits.expiresAt} > ${now + 2 * windowMs})`
      const row = await db
        .insert(rateLimits)
        .values({ key, count: 1, expiresAt: now + windowMs })
        .onConflictDoUpdate({
          target: rateLimits.key,
          set: {
            count: sql`case when ${expired} then 1 else ${rateLimits.count} + 1 end`,
            expiresAt: sql`case when ${expired} then ${now + windowMs} else ${rateLimits.expiresAt} end`,
          },
        })
        .returning({ count: rateLimits.count, resetAt: rateLimits.expiresAt })
        .get()
      return row
    },
    forgive: async (key, how) => {
      if (how === 'all') await db.delete(rateLimits).where(eq(rateLimits.key, key)).run()
      else {
        const count = sql`max(0, ${rateLimits.count} - 1)`
        await db.update(rateLimits).set({ count }).where(eq(rateLimits.key, key)).run()
      }
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
