import { expireCommands } from '../../app/mesh/downlink/commands.ts'
import { announceHeard, announceNodes } from '../../app/mesh/live/details.ts'
import type { Events, Note } from '../../app/mesh/live/event.ts'
import { createEvents } from '../../app/mesh/live/events.ts'
import { readRevision } from '../../app/mesh/live/revision.ts'
import { KEEP_ALIVE_MS } from '../../app/mesh/live/stream.ts'
import { MINUTE_MS } from '../../shared/time.ts'
import { createBeat } from './beat.ts'
import { watchExpiry } from './expiry.ts'
import { countNotes, follow, passOn, watchChanges } from './gaps.ts'
import { FULL_HEADER, MOST_READERS, type Objects, type Passed, type Serving, type Told } from './protocol.ts'

/** A stream ends after ten minutes: the platform may notice late, or never, that a client has gone. */
const KEEP_ALIVES = 40
/** Events are kept so long after the last reader. */
const LINGER_MS = 10 * MINUTE_MS
/** More than on Node, because a stream whose client has gone keeps its place for up to half a minute. */
const STREAMS_PER_USER = 30
/** Notes that wait for the database. If there are more, readers load everything again. */
const MOST_WAITING = 100

/** The readers of one object. */
export type Readers = {
  fetch(request: Request): Promise<Response>
  tell(told: Told): Promise<void>
  join(index: number): Passed
  /** Nobody has read for some time. */
  isIdle(): boolean
}

type Given = {
  readonly objects: Objects
  /** Which of them this one is. */
  readonly index: number
  readonly serve: (events: Events) => Serving
  readonly mostReaders?: number
}

export function openReaders({ objects, index, serve, mostReaders = MOST_READERS }: Given): Readers {
  const beat = createBeat(KEEP_ALIVE_MS, () => void lookForGaps())
  const own = createEvents({ now: Date.now, after: beat.after }, crypto.randomUUID().slice(0, 8), STREAMS_PER_USER)
  let readers = 0
  let lastRead = Date.now()
  const events: Events = {
    ...own,
    keepAlives: KEEP_ALIVES,
    subscribe(userId, wake) {
      const release = own.subscribe(userId, wake)
      if (release === null) return null
      readers += 1
      let isOpen = true
      return () => {
        if (isOpen) readers -= 1
        isOpen = false
        lastRead = Date.now()
        release()
      }
    },
  }
  const { ports, fetch } = serve(events)
  const { store, log } = ports
  const others = passOn(objects, own.epoch)
  const first = index === 0 ? null : follow(objects, index, own.skip)
  const changes = watchChanges(own.skip)
  const counted = countNotes(() => {
    own.skip()
    others.tell([], true)
  })

  const lookForGaps = async (): Promise<void> => {
    try {
      counted.look()
      await first?.join()
      changes.look(await readRevision(store))
    } catch (error) {
      own.skip()
      log.error('Live events may be missing: readers load everything again', { error })
    }
  }

  const expiry = watchExpiry(() => void endExpired())
  const endExpired = async (): Promise<void> => {
    if (readers === 0 && !others.hasAny()) return
    const told: Events = {
      ...events,
      publish(ended) {
        changes.noteTold()
        events.publish(ended)
        others.tell([{ kind: 'events', events: ended }], false)
      },
    }
    try {
      await expireCommands({ store, now: Date.now, events: told })
    } catch (error) {
      log.error('Commands for collectors could not be ended', { error })
    }
  }

  const publish = async (note: Note): Promise<void> => {
    if (note.kind === 'events') events.publish(note.events)
    else if (note.kind === 'heard') await announceHeard({ store, log, events }, note.events)
    else await announceNodes({ store, events }, note.nums)
  }
  let waiting = 0
  let latest = Promise.resolve()
  /** One after the other: what was read for a note must not be reported after what is read for a later one. */
  const publishInTurn = async (notes: readonly Note[]): Promise<void> => {
    await latest
    for (const note of notes) await publish(note)
  }

  return {
    async fetch(request) {
      lastRead = Date.now()
      if (readers >= mostReaders) return new Response(null, { status: 503, headers: { [FULL_HEADER]: '' } })
      if (readers === 0) await lookForGaps()
      const answer = await fetch(request)
      return answer.body === null ? answer : new Response(throughNative(answer.body, request.signal), answer)
    },
    async tell(told) {
      const { notes, isMissing, passed } = told
      changes.noteTold()
      if (index === 0) expiry.noteTold(notes)
      if (told.counted !== undefined) counted.noteTold(told.counted, isMissing)
      if (passed !== undefined) first?.noteTold(passed)
      if (isMissing || waiting >= MOST_WAITING) own.skip()
      others.tell(notes, isMissing)
      if (waiting >= MOST_WAITING) return
      waiting += 1
      latest = publishInTurn(notes)
        .catch((error: unknown) => {
          own.skip()
          log.error('Live events were lost: readers load everything again', { error })
        })
        .finally(() => (waiting -= 1))
      await latest
    },
    join: others.join,
    isIdle: () => readers === 0 && Date.now() - lastRead > LINGER_MS && !others.hasAny(),
  }
}

/**
 * Ends when the client goes: by the signal at once (the flag `enable_request_signal`), or when a native stream cannot be
 * written to. Behind wrangler's proxy only the latter happens, at the second keep-alive.
 */
function throughNative(body: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream()
  body.pipeTo(writable, { signal }).catch(() => {})
  return readable
}
