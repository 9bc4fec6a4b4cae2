import type { SQL } from 'drizzle-orm'
import type { Statement } from '../../../db/store.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'

/**
 * Something valid that was shown once. `claim` takes it in an atomic step, where `unchanged` is true by then; of two at
 * one instant `isClaimed` is true for the one that won.
 */
export type Proof = {
  readonly factor: SecondFactor
  readonly claim: (unchanged: SQL) => Statement
  readonly isClaimed: SQL
}
