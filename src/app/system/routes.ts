import { CLOCK_STATES } from '../base/pacing/clock.ts'
import { sql } from 'drizzle-orm'
import { type Context, Hono } from 'hono'
import * as z from 'zod'
import { revisions } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { type AppEnv } from '../base/context.ts'
import { answers, anyone } from '../http/describe.ts'

const queries = prepareOnce((db) => ({
  probe: db
    .select({ one: sql<number>`1` })
    .from(revisions)
    .limit(1)
    .prepare(),
}))

/** Anybody may call this, so the database is queried at most this often. A failure is never cached. */
const PROBE_INTERVAL_MS = 1000
const answeredAt = new WeakMap<Store, number>()

const healthSchema = z.object({
  status: z.literal('ok'),
  uptime: z.number(),
  clock: z
    .enum(CLOCK_STATES)
    .exclude(['confirmed'])
    .optional()
    .describe('The clock of the machine is far from the stored times and not confirmed; absent: the clock is right'),
})
const unhealthySchema = z.object({
  status: z.literal('error'),
  uptime: z.number(),
  unavailable: z.enum(['database', 'session store', 'disk']).describe('What does not answer, or is full'),
})

export const healthRoutes = new Hono<AppEnv>().get(
  '/',
  anyone,
  answers('The health of the service. Uptime is in seconds', { 200: healthSchema, 503: unhealthySchema }),
  async (c) => {
    const { store, sessions, disk, now } = c.get('ctx')
    const age = now() - (answeredAt.get(store) ?? 0)
    if (age >= 0 && age < PROBE_INTERVAL_MS) return healthy(c, now())
    try {
      await queries(store).probe.get()
    } catch (error) {
      return unhealthy(c, 'database', error)
    }
    try {
      await sessions.probe?.()
    } catch (error) {
      return unhealthy(c, 'session store', error)
    }
    if (disk?.isFull() === true) {
      return c.json({ status: 'error' as const, uptime: uptime(c, now()), unavailable: 'disk' as const }, 503)
    }
    answeredAt.set(store, now())
    return healthy(c, now())
  },
)

function healthy(c: Context<AppEnv>, now: number) {
  const clock = c.get('ctx').clockWatch?.state().state ?? 'confirmed'
  return c.json({ status: 'ok' as const, uptime: uptime(c, now), ...(clock !== 'confirmed' && { clock }) }, 200)
}

function unhealthy(c: Context<AppEnv>, unavailable: z.infer<typeof unhealthySchema>['unavailable'], error: unknown) {
  const { log, now } = c.get('ctx')
  log.error(`The ${unavailable} does not answer`, { error })
  return c.json({ status: 'error' as const, uptime: uptime(c, now()), unavailable }, 503)
}

/** Whole seconds. */
function uptime(c: Context<AppEnv>, now: number): number {
  return Math.floor((now - c.get('ctx').startedAt) / 1000)
}
