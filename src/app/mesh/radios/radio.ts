import type { Context } from 'hono'
import type { LoraSettings } from '../../../meshtastic/airtime.ts'
import type { LinkKind } from '../../../shared/mesh/link-kinds.ts'
import type { RadioDevice } from '../../device-config/device.ts'
import type { RemoteAdmin } from '../../device-config/remote/port.ts'
import type { CollectorInfo } from '../collector/state.ts'

export const LINK_STATES = ['connecting', 'handshake', 'connected', 'restarting', 'busy', 'waiting', 'stopped'] as const

export type LinkInfo = {
  readonly name: string
  readonly kind: LinkKind
  readonly state: (typeof LINK_STATES)[number]
  /** When the link entered this state. */
  readonly since: number
  readonly lastFrameAt: number | null
  readonly reconnects: number
  /** Why the link is not connected, in words; null when it is. */
  readonly reason: string | null
  readonly radio: {
    readonly nodeNum: number
    readonly firmwareVersion: string | null
    readonly hwModel: string | null
    readonly role: string | null
  } | null
  readonly queue: { readonly free: number; readonly maxlen: number } | null
  /** Whether the radio may transmit, according to its settings; null until it reports them. */
  readonly txEnabled: boolean | null
  /** The radio's latest notification to its user, for example that its key is weak. */
  readonly notice: { readonly at: number; readonly level: string; readonly message: string } | null
}

/** What a packet is for: a radio accepts packets of each kind only so often. */
export type OutgoingKind =
  | 'text'
  | 'traceroute'
  | 'position'
  | 'telemetry'
  | 'node-info'
  | 'waypoint'
  | 'alert'
  | 'remote'

/** An automation rule as it was when it sent something. */
export type RuleMark = { readonly automationId: number; readonly revision: number }

/** The purpose of a place in a sending queue. */
export type Reservation = {
  /** Name of the radio's source; null: the first one that can send. */
  readonly radio?: string | null
  /** A rule has a share of the places, and its packets are sent after those of users; null: a user sends. */
  readonly rule?: RuleMark | null
  /** Another service asked for it: it has a share of the places, and its packet has this id. */
  readonly command?: GivenCommand | null
}

/** What the service to which this one delivers asked for. */
export type GivenCommand = {
  readonly packetId: number
  /** Host and port of that service, and who asked there. */
  readonly service: string
  readonly askedBy: string
  /** Whether it is too late to send it. */
  isOver(): boolean
  /** Called when something has become of the packet. */
  onDelivery(): void
}

/** A place in the sending queue of a radio, until `send` or `release`. */
export type Outgoing = {
  /** Name of the radio's source. */
  readonly source: string
  /** The radio's own node number: the sender. */
  readonly nodeNum: number
  /** For the single packet in this place. */
  readonly packetId: number
  /** The radio's own setting, which no packet may exceed. */
  readonly hopLimit: number
  /** Queues an encoded ToRadio. */
  send(message: Uint8Array): void
  release(): void
}

/**
 * Requests the answer of the process that runs the radios; null if no process accepted the request. Throws
 * `radio_unavailable`.
 */
export type AskElsewhere = () => Promise<Response | null>

/** The radio links of this process. */
export interface Radio {
  links(): readonly LinkInfo[]
  devices(): readonly RadioDevice[]
  /** Opens, closes and changes the connections as the table says now. Absent: not possible here. */
  applyConnections?(): Promise<void>
  /** The ports for apps, by the name of the radio's source. Absent: unknown here. */
  virtualNodes?(): ReadonlyMap<string, PortInfo>
  /** Packets that wait to be passed to the radio of a source. */
  sendingOf?(source: string): number
  /** Absent: nodes are not administered over the mesh here. */
  readonly remote?: RemoteAdmin | undefined
  /** Events that were heard but are not stored yet. */
  waiting(): number
  /** Packets that wait to be passed to a radio. */
  sending(): number
  /** Null: this service is not a collector. */
  collector(): CollectorInfo | null
  /** Throws `radio_unavailable`, `queue_full`. */
  reserve(kind: OutgoingKind, asked?: Reservation): Outgoing
  /** Withdraws packets of the rules for which this returns true, unless a radio already has them. */
  withdraw(isStale: (rule: RuleMark) => boolean): void
  /** Withdraws a packet that another service asked for, unless a radio already has it. Absent: not possible here. */
  expire?(packetId: number): void
  /**
   * Deletes a node from the memory of the connected radios, except the radio that is the node itself. Absent: not
   * possible here.
   */
  forgetNode?(nodeNum: number): void
  /**
   * Tells the connected radios whether a node is a favourite or ignored, as it is stored. Absent: not possible here.
   */
  markNode?(nodeNum: number): void
  /** The encoded `User` that a radio reported of itself; null: none yet. Absent: not possible here. */
  ownUser?(source: string): Uint8Array | null
  /** One entry for each radio that heard this node. */
  hearings(nodeNum: number): readonly Hearing[]
  /**
   * Absent or null: this process has the radios. Otherwise the way to forward a request to the process that has them.
   */
  elsewhere?(c: Context): AskElsewhere | null
  /** Whether another process has admitted and counted this request before forwarding it. */
  isHandedOver?(c: Context): boolean
  /** The modulation of the radio that `reserve` would choose; null: not reported. */
  lora(): LoraSettings | null
}

/** A port where Meshtastic apps connect as to the radio. */
export type PortInfo = {
  /** `waiting`: it accepts nobody now. `failed`: it does not listen, and tries again. */
  readonly state: 'open' | 'waiting' | 'failed' | 'closed'
  /** Apps that are connected. */
  readonly clients: number
  /** Why it is not open, in words. */
  readonly reason: string | null
  /** The TCP port in use; null: not listening. */
  readonly port: number | null
}

/** When and over how many hops a radio last heard a node. */
export type Hearing = {
  /** Name of the radio's source. */
  readonly source: string
  readonly at: number
  /** Null: unknown, or over the internet. */
  readonly hopsAway: number | null
}
