import type { JsonObject } from '@bufbuild/protobuf'
import type { SectionInput } from '../../meshtastic/config/change.ts'
import type { RegionPresets } from '../../meshtastic/config/region-presets.ts'
import type { SectionKind } from '../../meshtastic/config/kinds.ts'
import type { SectionView } from '../../meshtastic/config/values.ts'
import type { OwnKind } from '../../shared/mesh/link-kinds.ts'

/** A section of a radio's settings as this connection read it, without its secrets. */
export type LiveSection = SectionView & {
  readonly section: string
  readonly kind: SectionKind
  readonly readAt: number
  /** Changes with every change, including one of a secret. It has no meaning in another process. */
  readonly revision: string
}

/** The requested change of a section. */
export type SectionChange = SectionInput & {
  /** Paths of risky fields whose change is confirmed. */
  readonly confirm: readonly string[]
  /** The revision that the client read; null: any revision. */
  readonly revision: string | null
}

/** A checked change: no other change of the radio begins until this one has ended or is released. */
export type PreparedChange = {
  /** Paths; empty if nothing changes. */
  readonly fields: readonly string[]
  readonly secretsChanged: readonly string[]
  /** By path, without secrets. */
  readonly before: JsonObject
  readonly after: JsonObject
  /** Begins to send; the outcome is stored in the row with this id. */
  start(id: string): void
  /** Gives up the change, unless it was started. */
  release(): void
}

/** A radio whose settings can be changed. */
export type RadioDevice = {
  /** Name of the radio's source. */
  readonly source: string
  readonly kind: OwnKind
  nodeNum(): number | null
  /** Empty unless the radio is connected and has reported all settings on this connection. */
  sections(): readonly LiveSection[]
  /** The presets that the radio allows in each region. Empty: it did not report them (before firmware 2.8). */
  regionPresets(): readonly RegionPresets[]
  /**
   * Throws `radio_unavailable`, `invalid_request`, `configuration_changed`, `secret_required`, `confirmation_required`,
   * `configuration_change_in_progress`; nothing is sent then.
   */
  prepare(section: string, change: SectionChange): PreparedChange
}
