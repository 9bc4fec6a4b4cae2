import { ownedBy } from '../base/owned.ts'
import { CLOCK_STATES } from '../base/pacing/clock.ts'
import { sql } from 'drizzle-orm'
import { Hono } from 'hono'
import * as z from 'zod'
import { revisions } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { type AppEnv, type Ctx, PHASES } from '../base/context.ts'
import { answers, anyone } from '../http/describe.ts'
import { MINUTE_MS } from '../../shared/time.ts'

const queries = prepareOnce((db) => ({
  probe: db
    .select({ one: sql<number>`1` })
    .from(revisions)
    .limit(1)
    .prepare(),
}))

const PARTS = ['database', 'session store'] as const
type Part = (typeof PARTS)[number]

/** Anybody may call these routes, so both parts are asked at most this often. A failure is never cached. */
const PROBE_INTERVAL_MS = 1000
/** Somebody may ask every second while the part is away. */
const LOG_INTERVAL_MS = MINUTE_MS
/** When both parts answered last, and when it was logged of each that it does not. */
const probes = ownedBy((_store: Store) => ({ answeredAt: 0, loggedAt: new Map<Part, number>() }))

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
  unavailable: z.enum([...PARTS, 'disk']).describe('What does not answer, or is full'),
})

export const healthRoutes = new Hono<AppEnv>().get(
  '/',
  anyone,
  answers('The health of the service. Uptime is in seconds', { 200: healthSchema, 503: unhealthySchema }),
  async (c) => {
    const ctx = c.get('ctx')
    const uptime = Math.floor((ctx.now() - ctx.startedAt) / 1000)
    const unavailable = (await findAway(ctx)) ?? (ctx.disk?.isFull() === true ? 'disk' : null)
    if (unavailable !== null) return c.json({ status: 'error' as const, uptime, unavailable }, 503)
    const clock = ctx.clockWatch?.state().state ?? 'confirmed'
    return c.json({ status: 'ok' as const, uptime, ...(clock !== 'confirmed' && { clock }) }, 200)
  },
)

const readySchema = z.object({ status: z.literal('ready') })
const unreadySchema = z.object({
  status: z.literal('unready'),
  reason: z
    .enum([...PHASES, ...PARTS])
    .exclude(['serving'])
    .describe('What the service does, or what does not answer'),
})

// With a full disk it still answers readers, and administrators must be able to make room.
export const readyRoutes = new Hono<AppEnv>().get(
  '/',
  anyone,
  answers('Whether the service should get requests, for load balancers', { 200: readySchema, 503: unreadySchema }),
  async (c) => {
    const ctx = c.get('ctx')
    const phase = ctx.phase()
    const reason = phase === 'serving' ? await findAway(ctx) : phase
    return reason === null
      ? c.json({ status: 'ready' as const }, 200)
      : c.json({ status: 'unready' as const, reason }, 503)
  },
)

const liveSchema = z.object({ status: z.literal('live') })
const deadSchema = z.object({ status: z.literal('dead'), reason: z.literal('database') })

// A process that opens its files again can recover from a disk that was away. It cannot from anything else that is
// checked here.
export const liveRoutes = new Hono<AppEnv>().get(
  '/',
  anyone,
  answers('Whether the process works: if not, restarting it may help', { 200: liveSchema, 503: deadSchema }),
  async (c) => {
    const ctx = c.get('ctx')
    const isDead = ctx.disk?.isFull() !== true && (await findAway(ctx)) === 'database'
    return isDead
      ? c.json({ status: 'dead' as const, reason: 'database' as const }, 503)
      : c.json({ status: 'live' as const }, 200)
  },
)

/** The first part that does not answer. */
async function findAway(ctx: Ctx): Promise<Part | null> {
  const { store, sessions, now } = ctx
  const age = now() - probes(store).answeredAt
  if (age >= 0 && age < PROBE_INTERVAL_MS) return null
  const ask: Record<Part, () => Promise<unknown>> = {
    database: async () => queries(store).probe.get(),
    'session store': async () => sessions.probe?.(),
  }
  for (const part of PARTS) {
    try {
      await ask[part]()
    } catch (error) {
      logAway(ctx, part, error)
      return part
    }
  }
  probes(store).answeredAt = now()
  return null
}

function logAway({ store, log, now }: Ctx, part: Part, error: unknown): void {
  const { loggedAt } = probes(store)
  const age = now() - (loggedAt.get(part) ?? Number.NEGATIVE_INFINITY)
  if (age >= 0 && age < LOG_INTERVAL_MS) return
  loggedAt.set(part, now())
  log.error(`The ${part} does not answer`, { error })
}
