import { ownedBy } from '../../base/owned.ts'
import type { Context, MiddlewareHandler } from 'hono'
import type { AppEnv, Ctx, Ports } from '../../base/context.ts'
import { describe } from '../describe.ts'
import { AppError } from '../errors.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'

/**
 * How many requests of one user run at once, and after how long without activity a place is free again: its reader
 * stopped reading, or the runtime dropped the request, as the edge does when the client disconnects. Streams have their
 * own places, so that an hour-long download blocks no page. A preview of a large mesh works for minutes.
 */
const KINDS = {
  read: { most: 2, goneAfterMs: 60_000 },
  stream: { most: 2, goneAfterMs: 60_000 },
  preview: { most: 1, goneAfterMs: 600_000 },
} as const
type Kind = keyof typeof KINDS

const MAX_WAITING = 32
const MAX_WAIT_MS = 30_000

type Place = { heardAt: number }
type Queue = {
  readonly kind: (typeof KINDS)[Kind]
  readonly places: Set<Place>
  readonly waiting: ((place: Place) => void)[]
}

const queuesOf = ownedBy((_buckets: Ports['buckets']) => new Map<string, Queue>())

/**
 * For expensive requests: each user has one or two at a time, and further ones wait. Must follow the access rule. Throws
 * `rate_limited` if too many already wait, or if none ended for half a minute.
 */
export function inTurn(kind: Kind): MiddlewareHandler<AppEnv> {
  const handler: MiddlewareHandler<AppEnv> = async (c, next) => {
    const ctx = c.get('ctx')
    if (ctx.viewer === null) return next()
    const queue = queueOf(ctx, kind, ctx.viewer.user.id)
    const place = await takePlace(ctx, queue)
    const leave = () => leavePlace(ctx, queue, place)
    try {
      await next()
    } finally {
      if (kind === 'stream' && c.res.ok) holdWhileRead(c, place, leave)
      else leave()
    }
  }
  return describe(handler, { errors: ['rate_limited'] })
}

function queueOf({ buckets }: Ctx, kind: Kind, userId: number): Queue {
  const key = `${kind}:${userId}`
  const queues = queuesOf(buckets)
  for (const [other, { places, waiting }] of queues) {
    if (other !== key && places.size === 0 && waiting.length === 0) queues.delete(other)
  }
  const queue = queues.get(key) ?? { kind: KINDS[kind], places: new Set(), waiting: [] }
  queues.set(key, queue)
  return queue
}

async function takePlace({ now }: Ctx, { kind: { most, goneAfterMs }, places, waiting }: Queue): Promise<Place> {
  for (const place of places) if (now() - place.heardAt > goneAfterMs) places.delete(place)
  if (places.size < most) {
    const place = { heardAt: now() }
    places.add(place)
    return place
  }
  if (waiting.length >= MAX_WAITING) throw tooMany()
  const place = await new Promise<Place>((resolve, reject) => {
    const turn = (given: Place) => {
      clearTimeout(timer)
      resolve(given)
    }
    const timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(turn), 1)
      reject(tooMany())
    }, MAX_WAIT_MS)
    waiting.push(turn)
  })
  // Other clients go first, so that a client with many requests only delays itself.
  await nextTurn()
  return place
}

function tooMany(): AppError {
  return new AppError('rate_limited', 'Too many expensive requests at once; try again in a few seconds', {
    retryAfter: 5,
  })
}

/** The longest waiting request gets the place, unless it had timed out and the place is taken. */
function leavePlace({ now }: Ctx, { kind: { most }, places, waiting }: Queue, place: Place): void {
  places.delete(place)
  const turn = places.size < most ? waiting.shift() : undefined
  if (turn === undefined) return
  const given = { heardAt: now() }
  places.add(given)
  turn(given)
}

/** Leaves when the body has been read, or the reader stops. */
function holdWhileRead(c: Context<AppEnv>, place: Place, leave: () => void): void {
  const { body } = c.res
  if (body === null) return leave()
  const { now } = c.get('ctx')
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  const held = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      place.heardAt = now()
      const read = await reader.read().catch((error: unknown) => {
        leave()
        throw error
      })
      if (!read.done) return controller.enqueue(read.value)
      leave()
      controller.close()
    },
    cancel: (reason) => {
      leave()
      return reader.cancel(reason)
    },
  })
  c.res = new Response(held, c.res)
}
