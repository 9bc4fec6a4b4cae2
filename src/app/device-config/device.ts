import type { JsonObject } from '@bufbuild/protobuf'
import type { SectionInput } from '../../meshtastic/config/change.ts'
import type { RegionPresets } from '../../meshtastic/config/region-presets.ts'
import type { RISKS, SectionKind } from '../../meshtastic/config/kinds.ts'
import type { RadioConfig } from '../../meshtastic/config/sections.ts'
import type { SectionView } from '../../meshtastic/config/values.ts'
import type { OwnKind } from '../../shared/mesh/link-kinds.ts'
import type { Issue } from '../http/errors.ts'

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

/** A checked change of one or more sections: no other change of the radio begins until it has ended or is released. */
export type PreparedChange = {
  /** Only those that change. */
  readonly sections: readonly PreparedSection[]
  /** Begins to send; the outcome of each section is stored in the row with its id. */
  start(ids: ReadonlyMap<string, string>): void
  /** Gives up the change, unless it was started. */
  release(): void
}

export type PreparedSection = {
  readonly section: string
  /** Paths. */
  readonly fields: readonly string[]
  readonly secretsChanged: readonly string[]
  /** By path, without secrets. */
  readonly before: JsonObject
  readonly after: JsonObject
}

/** What a change of a section would do. Nothing is reserved or sent. */
export type PlannedSection = PreparedSection & {
  /** Of the changed fields, those that need a confirmation, and why. */
  readonly risks: Readonly<Record<string, (typeof RISKS)[number]>>
  /** Why it cannot be done; empty: it can. */
  readonly issues: readonly Issue[]
}

/** A radio whose settings can be changed. */
export type RadioDevice = {
  /** Name of the radio's source. */
  readonly source: string
  readonly kind: OwnKind
  nodeNum(): number | null
  /** Empty unless the radio is connected and has reported all settings on this connection. */
  sections(): readonly LiveSection[]
  /**
   * All settings with their secrets, which may leave only by name, to those who may change them. Throws
   * `radio_unavailable`.
   */
  reveal(): RadioConfig
  /** The presets that the radio allows in each region. Empty: it did not report them (before firmware 2.8). */
  regionPresets(): readonly RegionPresets[]
  /** What changes of these sections would do. Throws `radio_unavailable`. */
  plan(changes: ReadonlyMap<string, SectionInput>): readonly PlannedSection[]
  /**
   * By section; all become one edit. Throws `radio_unavailable`, `invalid_request`, `configuration_changed`,
   * `secret_required`, `confirmation_required`, `configuration_change_in_progress`; nothing is sent then.
   */
  prepare(changes: ReadonlyMap<string, SectionChange>): PreparedChange
}
