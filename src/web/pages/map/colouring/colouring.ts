import type { Token } from '../../../parts/map/colour.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { ageOf } from '../filter.ts'

export const COLOURINGS = ['age', 'snr', 'hops', 'battery', 'role'] as const
/** What the colour of a node says. */
export type ColouringName = (typeof COLOURINGS)[number]

/** The classes into which a property divides the nodes. Those of the last one are hollow: not everybody sees colours. */
export type Colouring = {
  /** The colour of each class. */
  readonly tokens: readonly Token[]
  /** An index of `tokens`. */
  classOf(node: Node, now: number): number
}

/** A colouring with its legend: the names and full texts of its classes, in their order. */
export type Scale = Colouring & { readonly names: readonly string[]; readonly help: readonly string[] }

export const BY_AGE: Colouring = { tokens: ['--age-0', '--age-1', '--age-2'], classOf: ageOf }
