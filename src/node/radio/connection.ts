/** One byte stream to a radio. */
export type Connection = {
  /** Does nothing once the stream is closed. */
  write(bytes: Uint8Array): void
  /** Closes immediately and permanently, without a further event. */
  destroy(): void
}

export type ConnectionEvents = {
  onOpen(): void
  onData(bytes: Uint8Array): void
  /** Not opened, or closed by the other end. Comes once, and last. `reason` is for people. */
  onClose(reason: string): void
}

/** Begins to open a stream. Events come later, never during the call. */
export type Connect = (events: ConnectionEvents) => Connection

/** A stream on which nothing is written any more once `mayWrite` says no: asked before each write. */
export function fenced(connect: Connect, mayWrite: () => boolean): Connect {
  return (events) => {
    const connection = connect(events)
    return {
      ...connection,
      write: (bytes) => {
        if (mayWrite()) connection.write(bytes)
      },
    }
  }
}

/** Time, so that tests can hold it. `now` is in milliseconds since the epoch; `after` answers how to cancel. */
export type LinkClock = {
  now(): number
  after(delayMs: number, run: () => void): () => void
}

export const systemClock: LinkClock = {
  now: () => Date.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

/** One timer that can be started again: the earlier start is forgotten. */
export type Timer = { start(delayMs: number, run: () => void): void; stop(): void }

export function createTimer(clock: LinkClock): Timer {
  let cancel: (() => void) | null = null
  const stop = () => {
    cancel?.()
    cancel = null
  }
  return {
    stop,
    start(delayMs, run) {
      stop()
      cancel = clock.after(delayMs, () => {
        cancel = null
        run()
      })
    },
  }
}
