import type { Log } from '../../app/base/log.ts'
import { AppError } from '../../app/http/errors.ts'
import type { Events, Note } from '../../app/mesh/live/event.ts'
import { FULL_HEADER, INDEX_HEADER, objectOf, type Objects, OBJECTS, type Told } from './protocol.ts'

/** Pauses before notes that could not be told are told again. */
const PAUSES_MS = [200, 1000]
const RETRY_AFTER_SECONDS = 60

/** The live events of the worker: its streams are in Durable Objects. */
export type Telling = {
  readonly events: Events
  /** Whether something has happened since the last `tell`. */
  isDue(): boolean
  /** Tells the first object what has happened, for `waitUntil`: nobody waits for it, and it never rejects. */
  tell(): Promise<void>
}

export function openTelling(objects: Objects, log: Log): Telling {
  const notes = createNotes((told) => objectOf(objects, 0).tell(told), log)
  return {
    ...notes,
    events: {
      epoch: '',
      elsewhere: { open: (request) => openStream(objects, request, log), tell: notes.add },
      publish: (events) => notes.add({ kind: 'events', events }),
      last: () => 0,
      since: () => null,
      subscribe: () => null,
      after: () => () => {},
      isClosed: () => true,
      close() {},
    },
  }
}

/** Keeps notes until the request that made them, or another one, tells them. */
export function createNotes(send: (told: Told) => Promise<void>, log: Log, pauses: readonly number[] = PAUSES_MS) {
  let notes: Note[] = []
  /** Notes were lost, and no object knows that. */
  let isMissing = false
  const by = crypto.randomUUID()
  let count = 0
  return {
    add: (note: Note) => void notes.push(note),
    isDue: () => notes.length > 0,
    async tell(): Promise<void> {
      count += 1
      const told = { notes, isMissing, counted: { by, count } }
      notes = []
      isMissing = false
      for (const pause of [...pauses, null]) {
        try {
          return await send(told)
        } catch (error) {
          if (pause === null) log.error('Live events were lost: readers load everything again', { error })
          else await new Promise((resolve) => setTimeout(resolve, pause))
        }
      }
      isMissing = true
    },
  }
}

/** Asks one object after the other, because each has room for a number of readers. */
async function openStream(objects: Objects, request: Request, log: Log): Promise<Response> {
  for (let index = 0; index < OBJECTS; index++) {
    // The platform passes no signal on by itself.
    const asked = new Request(request, { signal: request.signal })
    asked.headers.set(INDEX_HEADER, String(index))
    const answer = await objectOf(objects, index)
      .fetch(asked)
      .catch((error: unknown) => {
        log.error('The object with the live events failed', { error })
        throw new AppError('database_unavailable')
      })
    // The headers of a fetched answer cannot be changed.
    if (answer.ok) return new Response(answer.body, answer)
    if (!answer.headers.has(FULL_HEADER)) throw refusalOf(answer)
  }
  throw new AppError('rate_limited', undefined, { retryAfter: RETRY_AFTER_SECONDS })
}

/** The same refusal, as one of this request. */
function refusalOf({ status, headers }: Response): AppError {
  if (status === 401) return new AppError('unauthenticated')
  if (status !== 429) return new AppError('database_unavailable')
  const retryAfter = Number(headers.get('retry-after'))
  return new AppError('rate_limited', 'Too many event streams of this user', { retryAfter })
}
