import type { SignedInCtx } from '../../../base/context.ts'
import type { NodeDetail } from '../../nodes/nodes.ts'
import type { NodeChange } from '../changes.ts'
import type { Receiver } from '../receivers.ts'
import type { Reason } from './reason.ts'

/** A node that fell silent, and what is known of it. */
export type Case = {
  readonly ctx: SignedInCtx
  /** As the viewer sees it. */
  readonly node: NodeDetail
  /** Its numbers: the present one and earlier ones. */
  readonly nums: readonly number[]
  readonly lastHeard: number
  readonly now: number
  /** Milliseconds that usually passed between two of its packets. */
  readonly pause: number
  /** Who heard it, the latest first. */
  readonly receivers: readonly Receiver[]
  /** What it reported differently than before, the latest first. */
  readonly changes: readonly NodeChange[]
}

/** `weight`: how much speaks for it, from 0 to 100, to put reasons in an order. */
export type Found = { readonly weight: number; readonly reason: Reason }
