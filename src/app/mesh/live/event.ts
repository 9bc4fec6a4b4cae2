import type { Place } from '../../sharing/visible.ts'
import type { EventKind } from '../../../shared/mesh/event-kinds.ts'

/** What has just happened in this process, for those who watch. */
export interface Events {
  /** Names this process among all that ever ran. */
  readonly epoch: string
  publish(events: readonly NewEvent[]): void
  /** Number of the latest event; 0 before the first one. */
  last(): number
  /** At most `limit` events after the one with this number; null when some of them are not kept any more. */
  since(seq: number, limit: number): readonly LiveEvent[] | null
  /** Calls `wake` at each change until the answered function is called; null when the user has too many streams. */
  subscribe(userId: number, wake: () => void): (() => void) | null
  /** Runs something later; answers how to cancel that. */
  after(delayMs: number, run: () => void): () => void
  isClosed(): boolean
  /** Ends all streams: the service stops. */
  close(): void
}

/** Something that has just happened; `data` is told as JSON. */
export type NewEvent = {
  readonly kind: EventKind
  readonly data: Readonly<Record<string, unknown>>
  /** More of it, which a viewer may go without: what is in it of the node can be read from the list. */
  readonly contents?: Readonly<Record<string, unknown>>
  /** Of a message: where it was said, which decides who is told. */
  readonly place?: Place
  /** For whom alone it is. */
  readonly userId?: number
}

export type LiveEvent = NewEvent & {
  /** Counts from 1, without a gap. */
  readonly seq: number
}
