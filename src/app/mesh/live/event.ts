import type { NodeChannels, Place } from '../../accounts/access/visible.ts'
import type { EventKind } from '../../../shared/mesh/event-kinds.ts'

/** The latest events of this process, for live readers. */
export interface Events {
  /** Identifies this process among all that ever ran. */
  readonly epoch: string
  publish(events: readonly NewEvent[]): void
  /** Number of the latest event; 0 before the first one. */
  last(): number
  /** At most `limit` events after the one with this number; null if some of them are no longer kept. */
  since(seq: number, limit: number): readonly LiveEvent[] | null
  /** Calls `wake` at each change until the returned function is called; null if the user has too many streams. */
  subscribe(userId: number, wake: () => void): (() => void) | null
  /** Runs something later; returns a function that cancels it. */
  after(delayMs: number, run: () => void): () => void
  isClosed(): boolean
  /** Ends all streams, because the service stops. */
  close(): void
  /** After this many keep-alives a stream ends, and its reader resumes; absent: it lasts. */
  readonly keepAlives?: number
  /** Absent: the streams are in this process. */
  readonly elsewhere?: Elsewhere
}

/** The process with the streams of users, if it is another one. People without an account have none there. */
export interface Elsewhere {
  /** Answers a request for a stream. Throws `rate_limited`, `database_unavailable`. */
  open(request: Request): Promise<Response>
  /** Neither waits nor throws. Events that could not be told are reported as missing. */
  tell(note: Note): void
}

/** What another process is told. */
export type Note =
  | { readonly kind: 'events'; readonly events: readonly NewEvent[] }
  /** The events of stored packets, without their details. */
  | { readonly kind: 'heard'; readonly events: readonly NewEvent[] }
  /** Nodes that a user changed or deleted. */
  | { readonly kind: 'nodes'; readonly nums: readonly number[] }

/** A packet by which a node was heard. */
export type HeardBy = {
  /** As for `canReadChannel`; null: one of our radios reported it about itself. */
  readonly channel: number | null
  readonly heardAt: number
  readonly hopsAway: number | null
  readonly viaMqtt: boolean
  readonly signed: boolean
  /** The node that heard it; null: unknown. */
  readonly receiver: number | null
  readonly to: number
}

/** Something that has just happened; `data` is sent as JSON. */
export type NewEvent = {
  readonly kind: EventKind
  readonly data: Readonly<Record<string, unknown>>
  /** Optional details. Whatever they say about the node is also in the list. */
  readonly contents?: Readonly<Record<string, unknown>>
  /** For a message: where it was sent. This decides who receives the event. */
  readonly place?: Place
  /** Nodes in the event. Viewers from whom one of them is hidden do not receive it. */
  readonly nodes?: readonly number[]
  /** For the changes of a node: the channels on which the values came. */
  readonly channels?: NodeChannels
  /** For a node: the packets by which it was heard. Absent: a user has changed it. */
  readonly heardBy?: readonly HeardBy[]
  /** For a message: the long name of its sender, for viewers who may read nodes. */
  readonly senderName?: string
  /** For a delivery: the message as in the list, if it was just sent. Users load it; anonymous callers get it. */
  readonly sent?: object
  /** The only user who receives it. */
  readonly userId?: number
}

export type LiveEvent = NewEvent & {
  /** Counts from 1, without a gap. */
  readonly seq: number
}
