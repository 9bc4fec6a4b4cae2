import type { Counters, SessionStore, StoredSession } from './store.ts'

type Counter = { count: number; expiresAt: number }

/**
 * Keeps sessions in the memory of one process, and also counters unless they are kept elsewhere. They are lost when it
 * ends.
 */
export function memorySessions(counters: Counters = memoryCounters()): SessionStore {
  const sessions = new Map<string, StoredSession>()
  const ofUser = (userId: number) => [...sessions.values()].filter((session) => session.userId === userId)
  const list = (userId: number, now: number) =>
    ofUser(userId)
      .filter(({ expiresAt }) => expiresAt > now)
      .toSorted((a, b) => b.lastSeenAt - a.lastSeenAt || b.id - a.id)
  return {
    ...counters,
    insert: async (session) => {
      sessions.set(session.tokenHash, session)
      return list(session.userId, session.lastSeenAt)
    },
    find: (tokenHash, now) => {
      const session = sessions.get(tokenHash)
      return session !== undefined && session.expiresAt > now ? session : null
    },
    extend: async (tokenHash, lastSeenAt, expiresAt) => {
      const session = sessions.get(tokenHash)
      if (session !== undefined) sessions.set(tokenHash, { ...session, lastSeenAt, expiresAt })
    },
    remove: async (tokenHash) => sessions.delete(tokenHash),
    removeForUser: async (userId, except) => {
      const others = ofUser(userId).filter(({ tokenHash }) => tokenHash !== except)
      for (const { tokenHash } of others) sessions.delete(tokenHash)
      return others.length
    },
    list: async (userId, now) => list(userId, now),
    sweep: async (now) => {
      for (const [key, { expiresAt }] of sessions) if (expiresAt <= now) sessions.delete(key)
      await counters.sweep(now)
    },
  }
}

/** Counters of one process. */
export function memoryCounters(): Counters {
  const counters = new Map<string, Counter>()
  return {
    hit: async (key, windowMs, now) => {
      const known = counters.get(key)
      // A window that ends later than one beginning now was opened by a clock that was ahead.
      const isOpen = known !== undefined && known.expiresAt > now && known.expiresAt <= now + 2 * windowMs
      const counter = isOpen ? known : { count: 0, expiresAt: now + windowMs }
      counter.count++
      counters.set(key, counter)
      return { count: counter.count, resetAt: counter.expiresAt }
    },
    forgive: async (key, how) => {
      const counter = counters.get(key)
      if (counter === undefined) return
      if (how === 'all') counters.delete(key)
      else counter.count = Math.max(0, counter.count - 1)
    },
    clear: async (prefix) => {
      for (const key of counters.keys()) if (key.startsWith(prefix)) counters.delete(key)
    },
    sweep: async (now) => {
      for (const [key, { expiresAt }] of counters) if (expiresAt <= now) counters.delete(key)
    },
  }
}
