import type { Packet } from '../../../meshtastic/packet.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import type { Source } from '../radios/source-table.ts'

/** A packet heard live for the first time: neither a copy nor from a radio's memory. */
export type News = {
  readonly source: Source
  readonly packet: Packet
  readonly receivedAt: number
  /** The node that heard it: a gateway, or the radio of the source. Null: unknown. */
  readonly receiver: number | null
  /** The sender's signature was verified. */
  readonly isSigned: boolean
  /** A radio of ours sent it over its own connection. */
  readonly isOwn: boolean
  /** Somebody other than its sender may have sent it. Its message is still shown. */
  readonly isDoubted?: boolean
}

/** Receives a stored batch. `suspected`: its events that seem to come from somebody else. */
export type HearBatch = (batch: readonly Heard[], suspected: ReadonlySet<RadioEvent>) => void

/** An event and where it came from. */
export type Heard = {
  readonly source: Source
  readonly event: RadioEvent
  /** It was delivered long after it was heard, so newer data may exist by now. */
  readonly isLate?: boolean
  /** The bytes of its FromRadio to pass on; null if they may contain secrets. */
  readonly raw?: Uint8Array | null
}
