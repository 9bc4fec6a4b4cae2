import { sql } from 'drizzle-orm'
import { Hono } from 'hono'
import { z } from 'zod'
import { revisions } from '../../db/schema.ts'
import { prepareOnce } from '../../db/store.ts'
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

const healthSchema = z.object({ status: z.enum(['ok', 'error']), uptime: z.number() })

export const healthRoutes = new Hono<AppEnv>().get(
  '/',
  anyone,
  answers('Whether the service works; uptime in seconds', { 200: healthSchema, 503: healthSchema }),
  async (c) => {
    const { ctx } = c.var
    const uptime = Math.floor((ctx.now() - ctx.startedAt) / 1000)
    try {
      await queries(ctx.store).probe.get()
    } catch (error) {
      ctx.log.error('The database does not answer', { error })
      return c.json({ status: 'error' as const, uptime }, 503)
    }
    return reply(c, { status: 'ok' as const, uptime })
  },
)
