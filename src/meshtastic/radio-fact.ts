import type { ChannelInfo } from './config/channel-info.ts'
import type { SettingsSection } from './config/settings.ts'
import type { Packet } from './packet.ts'
import type { PositionFix } from './payload/position.ts'
import type { Metric } from './payload/telemetry.ts'
import type { NodeUser } from './payload/user.ts'

/** The content of one message from a radio. */
export type RadioFact =
  /**
   * First message of a handshake: the radio's own node number. `rebootCount`: how often it has started; null: it does
   * not count.
   */
  | {
      readonly type: 'my-info'
      readonly nodeNum: number
      readonly nodedbCount: number
      readonly rebootCount: number | null
    }
  | { readonly type: 'node-info'; readonly node: NodeFacts }
  | { readonly type: 'metadata'; readonly metadata: Metadata }
  | { readonly type: 'channel'; readonly channel: ChannelInfo }
  | { readonly type: 'settings'; readonly settings: SettingsSection }
  /** The handshake that was requested with `nonce` is complete. */
  | { readonly type: 'config-complete'; readonly nonce: number }
  /**
   * `replayed`: from the radio's memory, after a handshake. It updates state and raises no event. `gateway`: the node
   * that heard it, if that was not the radio of this event.
   */
  | { readonly type: 'packet'; readonly packet: Packet; readonly replayed: boolean; readonly gateway?: number }
  /** `result` 0: the packet `packetId` was accepted for sending; `packetId` null: an answer to a heartbeat. */
  | {
      readonly type: 'queue-status'
      readonly free: number
      readonly maxlen: number
      readonly result: number
      readonly packetId: number | null
    }
  | { readonly type: 'rebooted' }
  /** A notification for the user. `packetId`: our packet that it is about; null: none, or unknown. */
  | {
      readonly type: 'notification'
      readonly level: string
      readonly message: string
      readonly packetId: number | null
    }
  | { readonly type: 'log'; readonly level: string; readonly source: string; readonly message: string }
  /** Not used here, e.g. `fileInfo`; null: newer than our table. */
  | { readonly type: 'other'; readonly variant: string | null }

/** An entry of the radio's node database. */
export type NodeFacts = {
  readonly nodeNum: number
  readonly user: NodeUser | null
  readonly fix: PositionFix | null
  readonly metrics: readonly Metric[]
  /** dB; null unless the node itself was heard, at `hopsAway` 0. */
  readonly snr: number | null
  readonly hopsAway: number | null
  readonly lastHeard: number | null
  readonly channel: number
  readonly viaMqtt: boolean
  readonly isFavorite: boolean
  readonly isIgnored: boolean
  readonly isMuted: boolean
  /** The radio reports that it verified a signature of the node. */
  readonly hasSigned: boolean
}

export type Metadata = {
  readonly firmwareVersion: string | null
  readonly hwModel: string | null
  readonly role: string
  readonly hasWifi: boolean
  readonly hasBluetooth: boolean
  readonly hasEthernet: boolean
  readonly hasPkc: boolean
}
