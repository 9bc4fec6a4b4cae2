import type { Buckets } from '../../app/http/limits/buckets.ts'
import type { SessionStore, StoredSession } from '../../app/accounts/sessions/store.ts'
import { createClient } from '@redis/client'
import * as z from 'zod'
import { AppError } from '../../app/http/errors.ts'
import type { Log } from '../../app/base/log.ts'
import { backOff } from '../../shared/back-off.ts'
import {
  CLEAR_ATTEMPTS,
  COUNT_ATTEMPT,
  EXTEND,
  FORGIVE_ATTEMPT,
  GIVE_PLACE_BACK,
  INSERT,
  LIST,
  REMOVE,
  REMOVE_FOR_USER,
  TAKE_PLACE,
} from './scripts.ts'

/** A server that does not answer within this time counts as down. */
const ANSWER_MS = 5000
const PING_MS = 10_000
const RECONNECTS = { firstMs: 100, mostMs: 3000 }

type Redis = {
  /** The fields of a hash; none when there is no such key. */
  fields(key: string): Promise<Readonly<Record<string, string>>>
  eval(script: string, keys: string[], args: readonly (string | number)[]): Promise<unknown>
  ping(): Promise<unknown>
}

/**
 * Sessions, login counters and buckets on a Redis server, version 6 or newer and not a cluster. Expiry counts by the
 * `now` that callers pass; the server's own clock only removes what expired long ago. Rejects when the server is
 * unreachable at the start; later it reconnects by itself, and until then every call throws `database_unavailable`. All
 * keys begin with `prefix`.
 */
export async function redisSessions(
  url: string,
  prefix: string,
  log: Log,
): Promise<{ store: SessionStore; buckets: Buckets; close(): Promise<void> }> {
  let ready = false
  let reported = false
  const client = createClient({
    url,
    disableOfflineQueue: true,
    pingInterval: PING_MS,
    maintNotifications: 'disabled',
    socket: {
      connectTimeout: ANSWER_MS,
      socketTimeout: PING_MS + ANSWER_MS,
      reconnectStrategy: (retries, cause) => (ready ? backOff(retries, RECONNECTS) : cause),
    },
  })
  client.on('ready', () => {
    if (reported) log.info('Redis answers again')
    ready = true
    reported = false
  })
  client.on('error', (error: unknown) => {
    if (ready && !reported) log.error('Redis does not answer', { error })
    reported = ready
  })
  try {
    await inTime(client.connect())
  } catch (error) {
    if (client.isOpen) client.destroy()
    throw new Error(`Redis at ${new URL(url).host} can't be reached: ${reason(error)}`, { cause: error })
  }
  const redis: Redis = {
    fields: (key) => answered(() => client.hGetAll(key)),
    eval: (script, keys, args) => answered(() => client.eval(script, { keys, arguments: args.map(String) })),
    ping: () => answered(() => client.ping()),
  }
  return {
    store: redisStore(redis, prefix),
    buckets: redisBuckets(redis, prefix),
    close: async () => {
      if (client.isOpen) client.destroy()
    },
  }
}

function redisStore(redis: Redis, prefix: string): SessionStore {
  const sessionKey = (tokenHash: string) => `${prefix}session:${tokenHash}`
  const userPrefix = `${prefix}user:`
  const userKey = (userId: number) => `${userPrefix}${userId}`
  const attemptsKey = (key: string) => `${prefix}attempts:${key}`
  const list = async (userId: number, now: number) => {
    const found = await redis.eval(LIST, [userKey(userId)], [sessionKey('')])
    return z
      .array(z.array(z.string()))
      .parse(found)
      .flatMap((pairs) => asSession(fromPairs(pairs)) ?? [])
      .filter(({ expiresAt }) => expiresAt > now)
      .toSorted((a, b) => b.lastSeenAt - a.lastSeenAt || b.id - a.id)
  }
  return {
    insert: async (session) => {
      const keys = [sessionKey(session.tokenHash), userKey(session.userId)]
      const { tokenHash, expiresAt, lastSeenAt } = session
      await redis.eval(INSERT, keys, [sessionKey(''), tokenHash, lifetime(lastSeenAt, expiresAt), ...asFields(session)])
      return list(session.userId, lastSeenAt)
    },
    find: async (tokenHash, now) => {
      const session = asSession(await redis.fields(sessionKey(tokenHash)))
      return session !== null && session.expiresAt > now ? session : null
    },
    extend: async (tokenHash, lastSeenAt, expiresAt) => {
      const args = [userPrefix, lastSeenAt, expiresAt, lifetime(lastSeenAt, expiresAt)]
      await redis.eval(EXTEND, [sessionKey(tokenHash)], args)
    },
    remove: async (tokenHash) => {
      const removed = await redis.eval(REMOVE, [sessionKey(tokenHash)], [userPrefix, tokenHash])
      return z.int().parse(removed) > 0
    },
    removeForUser: async (userId, except = '') =>
      z.int().parse(await redis.eval(REMOVE_FOR_USER, [userKey(userId)], [sessionKey(''), except])),
    list,
    hit: async (key, windowMs, now) => {
      const answer = await redis.eval(COUNT_ATTEMPT, [attemptsKey(key)], [now, now + windowMs, windowMs])
      const [count, resetAt] = z.tuple([z.number(), z.number()]).parse(answer)
      return { count, resetAt }
    },
    forgive: async (key, how) => {
      await redis.eval(FORGIVE_ATTEMPT, [attemptsKey(key)], [how])
    },
    clear: async (prefix) => {
      await redis.eval(CLEAR_ATTEMPTS, [], [`${attemptsKey(prefix).replace(/[*?[\]\\]/g, '\\$&')}*`])
    },
    sweep: async () => {},
    probe: async () => {
      await redis.ping()
    },
  }
}

function redisBuckets(redis: Redis, prefix: string): Buckets {
  const bucketKey = (key: string) => `${prefix}bucket:${key}`
  return {
    take: async (key, { most, everyMs }, now) =>
      z.number().parse(await redis.eval(TAKE_PLACE, [bucketKey(key)], [now, most, everyMs])),
    giveBack: async (key, { everyMs }) => {
      await redis.eval(GIVE_PLACE_BACK, [bucketKey(key)], [everyMs])
    },
  }
}

// Computed from the session's own times, because the clocks of the two machines may differ.
function lifetime(from: number, to: number): number {
  return Math.max(1, to - from)
}

const integer = z.coerce.number().pipe(z.int())
const text = z.string().nullable().default(null)
const sessionFields = z.object({
  id: integer,
  tokenHash: z.string(),
  userId: integer,
  epoch: integer,
  createdAt: integer,
  lastSeenAt: integer,
  expiresAt: integer,
  ip: text,
  userAgent: text,
  oidcIssuer: text,
  authenticatedAt: integer.nullable().default(null),
  factors: integer.nullable().default(null),
  factorAt: integer.nullable().default(null),
})

/** Names and values in turn; a null value is a missing field. */
function asFields(session: StoredSession): string[] {
  return Object.entries(session).flatMap(([name, value]) => (value === null ? [] : [name, String(value)]))
}

function fromPairs(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(pairs.flatMap((name, i) => (i % 2 === 0 ? [[name, pairs[i + 1] ?? '']] : [])))
}

function asSession(fields: Readonly<Record<string, string>>): StoredSession | null {
  return Object.keys(fields).length === 0 ? null : sessionFields.parse({ ...fields })
}

async function answered<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await inTime(call())
  } catch (error) {
    throw new AppError('database_unavailable', 'The session store does not respond', { cause: error })
  }
}

async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

function reason(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reason).join('; ')
  return error instanceof Error ? error.message : String(error)
}
