import { ownedBy } from '../../base/owned.ts'
import type { Events, LiveEvent } from './event.ts'
import type { SignedInCtx, Viewer } from '../../base/context.ts'
import { beginTelling } from './details.ts'
import { AppError } from '../../http/errors.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { seesEverything, viewKey } from '../../accounts/access/visible.ts'
import { contentsSeen, isOnlyHeard, mayGet, packetsSeen } from './seen.ts'
import { refresh } from './refresh.ts'
import { type Bell, createBell, demandEvents, opening, type Reader, RESET, streamOf } from './stream.ts'

/** Which events a reader wants, and how much of them. */
export type Wanted = {
  /** Also nodes of which nothing changed but how they were heard, their position and their measurements. */
  readonly heard: boolean
  /** Without what is said twice: the fields beside `changes` and `message`. */
  readonly brief: boolean
  /** Node events with the packets, and who heard them. */
  readonly packets: boolean
}

/** Events in one chunk. */
const MAX_CHUNK = 250

/**
 * Server-sent events (html.spec.whatwg.org, 9.2) from after `lastEventId`. The stream holds a position in the kept
 * events instead of its own queue: a slow reader misses events and gets `reset`; one that reads nothing is dropped.
 * `access` says that the viewer's permissions have changed. It ends with the viewer's session or token. Throws
 * `rate_limited`.
 */
export function openEventStream(
  ctx: SignedInCtx,
  lastEventId: string | undefined,
  wanted: Wanted,
): ReadableStream<Uint8Array> {
  const events = demandEvents(ctx)
  const bell = createBell()
  const release = events.subscribe(ctx.viewer.user.id, bell.ring)
  if (release === null) throw new AppError('rate_limited', 'Too many event streams of this user', { retryAfter: 15 })
  const reader = createReader(ctx, events, lastEventId, { bell, wanted })
  return streamOf(events, reader, bell, release)
}

function createReader(
  ctx: SignedInCtx,
  events: Events,
  lastEventId: string | undefined,
  { bell, wanted }: { readonly bell: Bell; readonly wanted: Wanted },
): Reader {
  const resumed = lastEventId === undefined || lastEventId === '' ? events.last() : placeOf(events, lastEventId)
  let place = resumed ?? events.last()
  const id = () => `id: ${events.epoch}-${place}\n`
  let first = `${opening(resumed !== null)}${id()}\n`
  let keepAlives = 0
  let isKeepAliveDue = false
  let isEnded = false
  let isBehind = false
  let rights = rightsOf(ctx.viewer)
  let view = viewKey(ctx.viewer.view)
  const noteRights = (viewer: Viewer): string => {
    const [before, seen] = [rights, view]
    rights = rightsOf(viewer)
    view = viewKey(viewer.view)
    // The page may contain more or less than the viewer may see now.
    return `${rights === before ? '' : ACCESS}${view === seen ? '' : `${RESET}\n`}`
  }
  const take = (viewer: Viewer, last: number): Chunk => {
    const found = events.since(place, Math.min(MAX_CHUNK, Math.max(0, last - place)))
    if (found === null) {
      place = events.last()
      return chunkOf(`${RESET}${id()}\n`)
    }
    if (found.length === 0) return EMPTY
    isBehind = found.length === MAX_CHUNK
    const chunk = sharedChunk(events, viewer, found, wanted)
    place = found.at(-1)?.seq ?? place
    return chunk
  }
  return {
    async next() {
      await beginTelling(ctx.store)
      for (;;) {
        if (isBehind) await nextTurn()
        isBehind = false
        if (isEnded || events.isClosed()) return null
        const { viewer, last } = await refresh(ctx, events)
        if (viewer === null || viewer.mustChangePassword || isEnded) return null
        const before = first + noteRights(viewer)
        const chunk = take(viewer, last)
        // Contains the number of the last event, even if it was not for this viewer, because the stream resumes there.
        const after = isKeepAliveDue ? `: keep-alive\n${id()}\n` : ''
        first = ''
        isKeepAliveDue = false
        if (before !== '' || after !== '') return utf8.encode(before + chunk.text + after)
        if (chunk.text !== '') return chunk.bytes
        if (!events.isClosed()) await bell.heard()
      }
    },
    keepAlive() {
      keepAlives += 1
      if (keepAlives === events.keepAlives) isEnded = true
      isKeepAliveDue = true
      bell.ring()
    },
    end() {
      isEnded = true
    },
  }
}

/** The bytes of some events. */
type Chunk = { readonly text: string; readonly bytes: Uint8Array }

const utf8 = new TextEncoder()
const chunkOf = (text: string): Chunk => ({ text, bytes: utf8.encode(text) })
const EMPTY = chunkOf('')

/** Chunks kept for readers at the same position. */
const KEPT_CHUNKS = 16
const chunksOf = ownedBy((_events: Events) => new Map<string, Chunk>())

/** Readers at the same position with the same permissions get the same bytes, built once for all of them. */
function sharedChunk(events: Events, viewer: Viewer, found: readonly LiveEvent[], wanted: Wanted): Chunk {
  const chunks = chunksOf(events)
  const mine = wanted.heard ? found : found.filter((event) => !isOnlyHeard(event))
  const { permissions, view, user } = viewer
  const who = { permissions, view, userId: user.id }
  const seen = mine.filter((event) => mayGet(who, event))
  const which = seen.length === found.length ? 'all' : seen.map(({ seq }) => seq).join()
  const withPackets = wanted.packets && permissions.info.read
  const contents = `${seesEverything(view) ? '' : viewKey(view)}-${permissions.nodes.read}-${wanted.brief}-${withPackets}`
  const key = `${found[0]?.seq}-${found.at(-1)?.seq}-${which}-${contents}`
  const known = chunks.get(key)
  if (known !== undefined) return known
  const chunk = chunkOf(seen.map((event) => block(events, event, viewer, wanted)).join(''))
  const [oldest] = chunks.size < KEPT_CHUNKS ? [] : chunks.keys()
  if (oldest !== undefined) chunks.delete(oldest)
  chunks.set(key, chunk)
  return chunk
}

const ACCESS = 'event: access\ndata: {}\n\n'

function rightsOf({ user, permissions, scope }: Viewer): string {
  return JSON.stringify([user.isAdmin, permissions, scope])
}

function block({ epoch }: Events, event: LiveEvent, { permissions, view }: Viewer, wanted: Wanted): string {
  const { seq, kind, senderName } = event
  const { brief } = wanted
  const isOfNode = kind === 'node' && wanted.packets && permissions.info.read
  const packets = isOfNode ? { packets: packetsSeen(event, view) } : {}
  const data = brief ? briefData(event) : event.data
  const named = senderName !== undefined && permissions.nodes.read ? { senderName } : {}
  // JSON has no line breaks, so it is one line of data.
  return `id: ${epoch}-${seq}\nevent: ${kind}\ndata: ${JSON.stringify({ ...data, ...named, ...packets, ...contentsSeen(event, view) })}\n\n`
}

/** The data of an event without what its details contain, too. */
function briefData({ kind, data, contents }: LiveEvent): LiveEvent['data'] {
  const { nodeNum, message } = data
  if (kind === 'node' && contents !== undefined) return { nodeNum }
  return kind === 'message' && message !== undefined ? { message } : data
}

/** The position of an id. Null if the event is no longer kept, or if the id is from another process or invalid. */
function placeOf(events: Events, lastEventId: string): number | null {
  const [epoch, digits = ''] = lastEventId.split('-')
  const place = /^\d{1,15}$/.test(digits) ? Number(digits) : null
  return epoch === events.epoch && place !== null && events.since(place, 0) !== null ? place : null
}
