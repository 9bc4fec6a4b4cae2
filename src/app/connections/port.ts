import type { LinkKind } from '../../shared/mesh/link-kinds.ts'
import type { StoredKind, Target } from './settings.ts'

/** What was found at an address. `problem`: why it is no usable radio or broker, in words; null: it is one. */
export type Found = {
  readonly problem: string | null
  /** Null: not told, or no radio. */
  readonly radio: {
    readonly nodeNum: number
    readonly longName: string | null
    readonly shortName: string | null
    readonly firmwareVersion: string | null
    readonly hwModel: string | null
    readonly region: string | null
  } | null
  /** SHA-256 of the certificate that it showed, hexadecimal; null: none. */
  readonly fingerprint: string | null
}

/** A radio that may be there. `name` is what it says of itself. */
export type Candidate = {
  readonly kind: StoredKind
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
}

/** How this process reaches radios and brokers. */
export interface Connecting {
  /** The connections that the environment has, in their order. A simulated radio stands in for all others. */
  readonly environment: readonly { readonly name: string; readonly kind: LinkKind }[]
  /** Connects once, for at most 20 s, and disconnects. */
  probe(target: Target): Promise<Found>
  /** Looks for radios at this machine and in its network, for a few seconds. */
  candidates(): Promise<readonly Candidate[]>
}
