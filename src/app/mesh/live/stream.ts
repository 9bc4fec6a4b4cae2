import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import type { Events } from './event.ts'

/** Proxies close connections that are silent for much longer. The viewer is also looked up again at this interval. */
export const KEEP_ALIVE_MS = 15_000
/** Keep-alives during which a reader may read nothing. */
const MAX_STALLED_KEEP_ALIVES = 2

/** Throws `unsupported_on_this_runtime`. */
export function demandEvents({ events }: Pick<Ctx, 'events'>): Events {
  if (events === null) throw new AppError('unsupported_on_this_runtime', 'This runtime has no live events')
  return events
}

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  // nginx would hold events back until its buffer is full.
  'X-Accel-Buffering': 'no',
}

export const RESET = 'event: reset\ndata: {}\n'
/** The beginning of a stream. It says how long a browser waits before it reconnects. `isWhole`: no event is missing. */
export const opening = (isWhole: boolean) => `${isWhole ? ': open\n' : RESET}retry: 3000\n`

export type Reader = {
  /** The next chunk, as soon as there is one; null at the end. */
  next(): Promise<Uint8Array | null>
  /** Makes something due, at least a comment. */
  keepAlive(): void
  end(): void
}

/**
 * The body of a stream: the chunks of `reader`, as fast as the client reads them. A client that reads nothing is
 * dropped.
 */
export function streamOf(
  events: Pick<Events, 'after'>,
  reader: Reader,
  bell: Bell,
  release: () => void,
): ReadableStream<Uint8Array> {
  let cancelKeepAlive = () => {}
  const stop = () => {
    cancelKeepAlive()
    release()
    bell.ring()
  }
  let isAsking = false
  let stalled = 0
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const keepAlive = () => {
        stalled = isAsking ? 0 : stalled + 1
        if (stalled >= MAX_STALLED_KEEP_ALIVES) {
          stop()
          controller.close()
          return
        }
        reader.keepAlive()
        cancelKeepAlive = events.after(KEEP_ALIVE_MS, keepAlive)
      }
      cancelKeepAlive = events.after(KEEP_ALIVE_MS, keepAlive)
    },
    async pull(controller) {
      isAsking = true
      try {
        const bytes = await reader.next()
        if (bytes !== null) return controller.enqueue(bytes)
        stop()
        controller.close()
      } catch (error) {
        stop()
        throw error
      } finally {
        isAsking = false
      }
    },
    cancel() {
      reader.end()
      stop()
    },
  })
}

export type Bell = {
  readonly ring: () => void
  /** Resolves when it has rung since the last time. */
  heard(): Promise<void>
}

/** Wakes a reader that waits. */
export function createBell(): Bell {
  let hasRung = false
  let answer: (() => void) | null = null
  return {
    ring() {
      hasRung = true
      answer?.()
    },
    async heard() {
      if (!hasRung) await new Promise<void>((resolve) => (answer = resolve))
      hasRung = false
      answer = null
    },
  }
}
