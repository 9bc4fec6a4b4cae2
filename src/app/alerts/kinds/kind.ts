import type * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import type { AuditAction } from '../../../shared/access/audit-actions.ts'
import type { SignedInCtx } from '../../base/context.ts'
import type { PlannedBatch } from '../../mesh/ingest/on-batch.ts'
import type { Occurrence } from '../findings/occur.ts'
import type { Past, Range } from '../past/past.ts'
import type { AlertOwner, Requirement } from '../rights.ts'
import type { WatchedNode } from '../world/watched.ts'
import type { Fact } from '../facts.ts'
import type { Words } from '../../words/words.ts'
import type { Anchor, World, WorldNeeds } from '../world/world.ts'
import type { CommonRule } from './fields.ts'

/** A rule that is on, with its owner's current permissions. */
export type Watching<Rule = CommonRule> = {
  readonly id: number
  readonly ownerId: number
  readonly anchorAt: number
  readonly rule: Rule
  readonly owner: AlertOwner
}

/** What a rule found about one node or one radio. */
export type Finding = {
  /** A rule has one open alert for each. */
  readonly subject: string
  /** Identifies this occurrence, which fires once. */
  readonly key: string
  readonly nodeNum: number | null
  /** The channel of the data; null: none. */
  readonly channel: number | null
  /** Start of the condition. */
  readonly since: number
  /** How long the condition must last before it fires, in milliseconds. */
  readonly forMs: number
  /** False: the condition cannot be judged now, and open alerts stay as they are. */
  readonly isKnown: boolean
  readonly fact: Fact
}

/** An alert that is not over. */
export type Open = { readonly startedAt: number; readonly firedAt: number | null }

/** Alerts of one rule that are not over, by subject. */
export type OpenAlerts = ReadonlyMap<string, Open>

export const nodeSubject = (nodeNum: number): string => `node:${nodeNum}`

/** A batch that is about to be stored. `newNodes`: nodes that are not in the database. */
export type Batch = PlannedBatch

/** A single event that a rule found in a batch. */
export type Event = Pick<Occurrence, 'subject' | 'key' | 'channel' | 'direct' | 'fact'> & {
  readonly watching: Watching
  readonly nodeNum: number
}

/** An entry of the audit log; `details` is JSON. */
export type LogEntry = {
  readonly id: number
  readonly action: string
  readonly userId: number | null
  readonly details: string
  readonly ip: string | null
}

export type NodeField = 'latitude' | 'longitude' | 'publicKey' | 'refusedPublicKey' | 'spoofClaim'
type Changed = { readonly nums: readonly number[]; readonly now: number }

/** Evaluates the current state, each minute. */
type StatePart<Rule> = {
  /** The parts of the world that `find` evaluates. */
  needs(rule: Rule): WorldNeeds
  find(watching: Watching<Rule>, world: World, open: OpenAlerts): Finding[]
  /** The world with the latest values that the owner may read. Absent: the world without hidden nodes. */
  seenBy?(store: Store, watching: Watching<Rule>, world: World): Promise<World>
  /** Positions to which later ones are compared. */
  newAnchors?(watching: Watching<Rule>, world: World): Anchor[]
  /** Evaluated with the packets that change one of these fields of a node, in addition to each minute. */
  readonly changes?: {
    readonly fields: readonly NodeField[]
    watches(rule: Rule): (node: WatchedNode) => boolean
    /** The current state of the changed nodes, and of those that they affect. */
    readWorld(store: Store, rules: readonly Watching<Rule>[], changed: Changed): Promise<World>
  }
}

/** Each kind of rule is one file in this folder, which exports one of these. `kinds.ts` lists them. */
export type Kind<Rule> = {
  /** What the owner of a rule needs to see what it watches. */
  readonly requires: Requirement
  /** Errors in a rule that its schema cannot find. */
  problemsOf?(rule: Rule): readonly { readonly path: string; readonly message: string }[]
  /** Whether the owner may see nothing that this rule watches, although they may see other data of this kind. */
  seesNone?(rule: Rule, owner: AlertOwner): boolean
  readonly state?: StatePart<Rule>
  /** Finds single events in a batch of packets; reads only if there may be one. */
  heard?(store: Store, rules: readonly Watching<Rule>[], batch: Batch): Promise<Event[]>
  /** Finds single events in the audit log about the account of a rule's owner. `tell` returns null for others. */
  readonly logged?: {
    readonly actions: readonly AuditAction[]
    tell(store: Store, entry: LogEntry): Promise<Fact | null>
  }
  /** The days that a preview looks back; absent: 7. */
  readonly pastDays?: number
  /** When a rule would have fired, according to stored data that the viewer may see. */
  preview(ctx: SignedInCtx, rule: Rule, range: Range): Promise<Past>
  /** Acknowledging an alert ends it. */
  readonly endsAcknowledged?: true
  /** The first line of a message about several alerts. Absent: their number. */
  heading?(words: Words, total: number, isOver: boolean): string
}

/** A kind with the schema of its rules. */
export function defineKind<Schema extends z.ZodObject>(
  schema: Schema,
  kind: Kind<z.infer<Schema>>,
): Kind<z.infer<Schema>> & { readonly schema: Schema } {
  return { schema, ...kind }
}
