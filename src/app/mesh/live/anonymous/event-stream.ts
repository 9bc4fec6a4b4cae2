import { ownedBy } from '../../../base/owned.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import { AppError } from '../../../http/errors.ts'
import type { Ctx } from '../../../base/context.ts'
import { addressKey } from '../../../http/limits/address-key.ts'
import { beginTelling } from '../details.ts'
import type { Events } from '../event.ts'
import { type Bell, createBell, opening, type Reader, RESET, streamOf } from '../stream.ts'
import { MAX_PUBLIC_STREAMS, MAX_PUBLIC_STREAMS_OF_ADDRESS } from '../../../../shared/limits.ts'
import { beginFeed, type Feed } from './feed.ts'

/** Events within this time are sent together. */
const TOGETHER_MS = 1000
/** Readers that are woken at a time, before other work gets its turn. */
const SLICE = 50
/**
 * A stream ends after this many keep-alives and frees its place. Otherwise the connection of a vanished client would
 * stay open for a long time.
 */
const MAX_KEEP_ALIVES = 40
const RETRY_AFTER_SECONDS = 60

type Place = { readonly address: string | null; readonly bell: Bell; readonly end: () => void }

/** The streams of anonymous callers in this process. */
type Hub = {
  feed: Feed | null
  readonly places: Set<Place>
  isRunning: boolean
}

/**
 * Server-sent events for an anonymous caller, from after `lastEventId`. The stream ends when public access is switched
 * off, when it shows something else, and when a node is hidden. Throws `unauthenticated` while public access is off, and
 * `rate_limited`.
 */
export async function openAnonymousStream(
  ctx: Ctx,
  events: Events,
  lastEventId: string | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const hub = hubOf(events)
  await beginTelling(ctx.store)
  const feed = await feedOf(hub, ctx, events)
  if (feed === null) throw new AppError('unauthenticated')
  const address = ctx.ip === null ? null : addressKey(ctx.ip)
  makeRoom(hub, address)
  const bell = createBell()
  const reader = createReader(feed, lastEventId, bell)
  const release = () => hub.places.delete(place)
  const place: Place = {
    address,
    bell,
    end() {
      release()
      reader.end()
      bell.ring()
    },
  }
  hub.places.add(place)
  if (!hub.isRunning) keepTelling(ctx, events, hub)
  return streamOf(events, reader, bell, release)
}

const hubOf = ownedBy((events: Events): Hub => {
  const hub: Hub = { feed: null, places: new Set(), isRunning: false }
  // When the service stops, streams end at once, without waiting for the next events.
  events.subscribe(NOBODY, () => {
    if (events.isClosed()) for (const place of hub.places) place.end()
  })
  return hub
})

/** The id of no user. */
const NOBODY = 0

/** The current feed; null while public access is off. */
async function feedOf(hub: Hub, ctx: Ctx, events: Events): Promise<Feed | null> {
  const { feed } = hub
  if (feed !== null && (hub.isRunning ? !feed.hasEnded() : await feed.renew(ctx))) return feed
  const next = await beginFeed(ctx, events)
  // Another request may have begun one meanwhile.
  if (hub.feed === null || hub.feed.hasEnded()) hub.feed = next
  return hub.feed
}

/** Throws `rate_limited`. If all places are taken, the address with the most streams loses one. */
function makeRoom({ places }: Hub, address: string | null): void {
  const held = new Map<string | null, number>()
  for (const place of places) held.set(place.address, (held.get(place.address) ?? 0) + 1)
  const mine = held.get(address) ?? 0
  if (address !== null && mine >= MAX_PUBLIC_STREAMS_OF_ADDRESS)
    throw refusal('Too many event streams from this address')
  if (places.size < MAX_PUBLIC_STREAMS) return
  const [loudest] = [...held].toSorted(([, a], [, b]) => b - a)
  if (loudest === undefined || loudest[1] <= mine + 1) throw refusal('Too many event streams without an account')
  for (const place of places) {
    if (place.address === loudest[0]) return place.end()
  }
}

function refusal(detail: string): AppError {
  const retryAfter = RETRY_AFTER_SECONDS
  return new AppError('rate_limited', detail, { retryAfter })
}

/** Sends events and wakes the readers, as long as there are readers. */
function keepTelling(ctx: Pick<Ctx, 'store' | 'now' | 'log'>, events: Events, hub: Hub): void {
  hub.isRunning = true
  events.after(TOGETHER_MS, () => void tell(ctx, events, hub))
}

async function tell(ctx: Pick<Ctx, 'store' | 'now' | 'log'>, events: Events, hub: Hub): Promise<void> {
  const { feed } = hub
  const before = feed?.last()
  const isOn = await feed?.renew(ctx).catch((error: unknown) => {
    ctx.log.error('Live events for anonymous callers end', { error })
    feed.end()
    return false
  })
  if (isOn !== true || feed?.last() !== before) await wake(hub)
  hub.isRunning = false
  if (hub.places.size > 0 && !events.isClosed()) keepTelling(ctx, events, hub)
}

async function wake({ places }: Hub): Promise<void> {
  let woken = 0
  for (const { bell } of places) {
    bell.ring()
    woken += 1
    if (woken % SLICE === 0) await nextTurn()
  }
}

const utf8 = new TextEncoder()

function createReader(feed: Feed, lastEventId: string | undefined, bell: Bell): Reader {
  const resumed = lastEventId === undefined || lastEventId === '' ? feed.last() : feed.placeOf(lastEventId)
  let place = resumed ?? feed.last()
  let first: string | null = `${opening(resumed !== null)}${feed.idOf(place)}\n`
  let isEnded = false
  let keepAlives = 0
  let isKeepAliveDue = false
  const take = (): Uint8Array | null => {
    if (first !== null) {
      const bytes = utf8.encode(first)
      first = null
      return bytes
    }
    if (place < feed.last()) {
      const bytes = feed.after(place)
      place = feed.last()
      isKeepAliveDue = false
      return bytes ?? utf8.encode(`${RESET}${feed.idOf(place)}\n`)
    }
    if (!isKeepAliveDue) return null
    isKeepAliveDue = false
    return KEEP_ALIVE
  }
  return {
    async next() {
      for (;;) {
        if (isEnded || feed.hasEnded()) return null
        const bytes = take()
        if (bytes !== null) return bytes
        await bell.heard()
      }
    },
    keepAlive() {
      keepAlives += 1
      if (keepAlives >= MAX_KEEP_ALIVES) isEnded = true
      isKeepAliveDue = true
      bell.ring()
    },
    end() {
      isEnded = true
    },
  }
}

const KEEP_ALIVE = utf8.encode(': keep-alive\n\n')
