import type { OwnKind } from '../../shared/mesh/link-kinds.ts'
import type { RadioProblem } from '../../shared/mesh/radio-problems.ts'
import type { Clock } from '../clock.ts'

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
  /**
   * The stream could not be opened, or the other end closed it. Called once, as the last event. `reason` is for people;
   * `problem` if it is a known one.
   */
  onClose(reason: string, problem?: RadioProblem): void
}

/** Begins to open a stream. Events come later, never during the call. */
export type Connect = (events: ConnectionEvents) => Connection

/** A configured radio. */
export type ConfiguredRadio = {
  readonly kind: OwnKind
  /** The name of its source: unique among all links. */
  readonly name: string
  readonly connect: (needs: { readonly clock: Clock }) => Connect
}

/** A stream that checks `mayWrite` before each write, and writes nothing once that returns false. */
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
