import type { RemoteReason, RemoteState } from '../../../shared/mesh/remote-states.ts'
import type { LiveSection, PreparedSection, SectionChange } from '../device.ts'

/** A node that is administered over the mesh, and the radio of this service that does it. */
export type RemoteTarget = {
  readonly nodeNum: number
  /** Base64; null: on the admin channel. */
  readonly publicKey: string | null
  /** Name of the radio's source. */
  readonly source: string
  /** Hops between them, as far as is known. */
  readonly hops: number
}

/** How an action stands. */
export type RemoteStep = {
  readonly state: RemoteState
  readonly reason: RemoteReason | null
  readonly detail: string | null
  readonly differing: readonly string[]
}

export type RemoteChange = SectionChange & {
  /** Paths of fields that can lose the node, confirmed a second time. */
  readonly accept: readonly string[]
}

/** An action that can begin: no other action with the node begins until it has ended or is released. */
export type PreparedAction = {
  /** Begins to send; each step is stored in the row with this id. */
  start(id: string): void
  /** Gives up the action, unless it was started. */
  release(): void
}

/** What actions cost on the air, in bytes of the answer for each part. */
export type PartSizes = readonly number[]

/** Administers nodes over the mesh. */
export type RemoteAdmin = {
  /** Throws `radio_unavailable` if the radio cannot reach a node with such a key. */
  demandWay(source: string, publicKey: string | null): void
  /** The public key of a radio of this service, base64; null: not known. */
  ownKey(source: string): string | null
  /** Sections that this process has read. */
  sections(nodeNum: number): readonly LiveSection[]
  /** Sizes of a section's parts: as read, or typical ones. */
  sizes(nodeNum: number, section: string): PartSizes
  /** Each throws `radio_unavailable` and `configuration_change_in_progress`. */
  prepareRead(target: RemoteTarget, section: string): PreparedAction
  /** Also throws what `prepare` of a radio of this service throws. */
  prepareChange(target: RemoteTarget, section: string, change: RemoteChange): PreparedSection & PreparedAction
  prepareReboot(target: RemoteTarget): PreparedAction
  /** Drops what is known of a node. */
  forget(nodeNum: number): void
}
