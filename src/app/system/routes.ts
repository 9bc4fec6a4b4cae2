import { sql } from 'drizzle-orm'
import { Hono } from 'hono'
import * as z from 'zod'
import { revisions } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { anyone } from '../access.ts'
import type { AppEnv } from '../context.ts'
import { answers } from '../describe.ts'
import { reply } from '../security.ts'

const queries = prepareOnce((db) => ({
  probe: db
    .select({ one: sql<number>`1` })
    .from(revisions)
    .limit(1)
    .prepare(),
}))

/** Anybody may ask, so the database is asked at most so often; a failure is never remembered. */
const PROBE_INTERVAL_MS = 1000
const answeredAt = new WeakMap<Store, number>()

const healthSchema = z.object({ status: z.enum(['ok', 'error']), uptime: z.number() })

export const healthRoutes = new Hono<AppEnv>().get(
  '/',
  anyone,
  answers('Whether the service works; uptime in seconds', { 200: healthSchema, 503: healthSchema }),
  async (c) => {
    const ctx = c.get('ctx')
    const uptime = Math.floor((ctx.now() - ctx.startedAt) / 1000)
    try {
      const age = ctx.now() - (answeredAt.get(ctx.store) ?? 0)
      if (age < 0 || age >= PROBE_INTERVAL_MS) {
        await queries(ctx.store).probe.get()
        answeredAt.set(ctx.store, ctx.now())
      }
    } catch (error) {
      ctx.log.error('The database does not answer', { error })
      return c.json({ status: 'error' as const, uptime }, 503)
    }
    return reply(c, { status: 'ok' as const, uptime })
  },
)
