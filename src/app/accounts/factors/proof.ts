import type { SQL } from 'drizzle-orm'
import type { Statement } from '../../../db/store.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'

/**
 * A valid proof that can be used once. `claim` uses it up in an atomic step, where `unchanged` must be true. Of two
 * simultaneous uses, `isClaimed` is true for the one that won.
 */
export type Proof = {
  readonly factor: SecondFactor
  readonly claim: (unchanged: SQL) => Statement
  readonly isClaimed: SQL
}
