import type { Statement, Store } from '../../../db/store.ts'
import type { Plan } from './plan.ts'

/** What a batch is about to store. */
export type PlannedBatch = {
  readonly plan: Plan
  /** Numbers of the nodes that are new. */
  readonly newNodes: ReadonlySet<number>
  /** In milliseconds. */
  readonly now: number
}

/** What a feature adds to a batch. */
export type TakingPart = {
  /** They run after the statements of the batch, in the same atomic step. */
  readonly statements: readonly Statement[]
  /** Called when the step is stored. Never rejects. Returns the users whose alerts changed. */
  stored(): Promise<readonly number[]>
}

/** Called before the atomic step of each batch, so that a feature that builds on the mesh can add statements to it. */
export type OnBatch = (store: Store, batch: PlannedBatch) => Promise<TakingPart>
