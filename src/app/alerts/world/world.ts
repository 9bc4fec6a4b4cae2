import type { RetentionProblem } from '../../retention/state.ts'
import type { WorldFinding } from './mesh-findings.ts'

/** A node as the rules see it. */
export type WorldNode = {
  readonly id: number
  readonly nodeNum: number
  /** Its long name, or its id without one. */
  readonly name: string
  readonly role: number | null
  readonly isFavorite: boolean
  readonly isLocal: boolean
  readonly isIgnored: boolean
  readonly firstHeard: number
  readonly lastHeard: number | null
  /** When our own radios last heard it off the air. */
  readonly lastHeardByRadio: number | null
  readonly latitude: number | null
  readonly longitude: number | null
  readonly precisionBits: number | null
  /** The channel of the position; null: our own radio reported it about itself. */
  readonly positionChannel: number | null
  readonly publicKey: string | null
  readonly previousPublicKey: string | null
  readonly refusedPublicKey: string | null
  readonly keyMismatch: boolean
  readonly spoofSuspected: boolean
  readonly spoofClaim: string | null
}

/** A radio, a broker or a collector. `since`: when it came up, or went down. */
export type WorldLink = {
  readonly name: string
  /** A radio of our own. */
  readonly isRadio: boolean
  readonly isUp: boolean
  readonly since: number
}

export type Measured = { readonly t: number; readonly v: number; readonly channel: number | null }

/** Everything that rules evaluate, at one moment. */
export type World = {
  readonly now: number
  /** When this service began to watch; null: it never stops. */
  readonly startedAt: number | null
  readonly nodes: readonly WorldNode[]
  readonly links: readonly WorldLink[]
  /** Names of the links by which a node was heard; none: unknown. */
  readonly heardBy: ReadonlyMap<number, readonly string[]>
  /** The latest values by metric, then by row id of the node. */
  readonly latest: ReadonlyMap<string, ReadonlyMap<number, Measured>>
  /** The positions of nodes when a rule began to watch them, by rule and node. */
  readonly anchors: ReadonlyMap<number, ReadonlyMap<number, Place>>
  readonly weakKeys: ReadonlySet<string>
  readonly backups: {
    readonly succeededAt: number | null
    readonly failure: { readonly id: number; readonly at: number } | null
    /** What is found about places to which the latest backup could not be copied. */
    readonly copies: readonly FailingCopy[]
  }
  readonly retention: readonly RetentionProblem[]
  /** What is wrong in the mesh, without what is muted; absent: not needed. */
  readonly meshFindings?: readonly WorldFinding[]
}

export type FailingCopy = {
  readonly subject: string
  readonly key: string
  readonly nodeNum: null
  readonly channel: null
  readonly since: number
  readonly forMs: 0
  readonly isKnown: true
  readonly fact: { readonly event: 'backup_failed'; readonly place: string }
}

export type Place = { readonly latitude: number; readonly longitude: number }

/** The position of a node to which a rule compares later ones. */
export type Anchor = Place & { readonly ruleId: number; readonly nodeNum: number }

/** The parts of the world that a rule evaluates. Links are always part of it. */
export type WorldNeeds = {
  readonly nodes?: true
  /** The latest values of this metric. */
  readonly metric?: string
  /** The links by which nodes were heard that have been silent for this long, in milliseconds. */
  readonly waysAfterMs?: number
  readonly anchors?: true
  readonly weakKeys?: true
  readonly backups?: true
  readonly retention?: true
  readonly meshFindings?: true
}
