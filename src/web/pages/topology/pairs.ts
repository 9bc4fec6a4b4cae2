import { nodeByNum, nodeName } from '../../state/mesh/nodes.ts'
import type { Neighbor } from '../../state/mesh/neighbors.ts'
import { isWithin, type Range } from '../../state/range.ts'

/** Two nodes of which at least one hears the other. */
export type Pair = {
  readonly key: string
  /** The weaker of both directions, or the only one. */
  readonly link: Neighbor
  /** The other one; null: it was not reported. */
  readonly other: Neighbor | null
  /** The latest report of both, in milliseconds. */
  readonly at: number
  /** dB; null: only one direction is known, or one of the reports is older than the limit. */
  readonly difference: number | null
}

/** The pairs with a report in this range; null: of any time. */
export function pairsOf(links: readonly Neighbor[], range: Range | null, now: number): Pair[] {
  const byPair = Map.groupBy(links, keyOf)
  const isRecent = ({ timestamp }: Neighbor) => range === null || isWithin(range, timestamp, now)
  return [...byPair].flatMap(([key, both]) => {
    const [first, second = null] = both.toSorted((a, b) => a.snr - b.snr || a.nodeNum - b.nodeNum)
    if (first === undefined || !both.some(isRecent)) return []
    const at = Math.max(first.timestamp, second?.timestamp ?? 0)
    const difference = second !== null && both.every(isRecent) ? second.snr - first.snr : null
    // An old report says less than a recent one, however weak it is.
    const [link, other] = second === null || isRecent(first) ? [first, second] : [second, first]
    return [{ key, link, other, at, difference }]
  })
}

function keyOf({ nodeNum, neighborNum }: Neighbor): string {
  return nodeNum < neighborNum ? `${nodeNum} ${neighborNum}` : `${neighborNum} ${nodeNum}`
}

export const PAIR_KEYS = ['node', 'neighbor', 'signal', 'other', 'difference', 'reported'] as const
export type PairKey = (typeof PAIR_KEYS)[number]

/** The order of two pairs by a column, upwards; unknown values last. */
export function comparePairs(a: Pair, b: Pair, by: PairKey): number {
  switch (by) {
    case 'node':
      return nameOfEnd(a.link.nodeNum, a.link.nodeId).localeCompare(nameOfEnd(b.link.nodeNum, b.link.nodeId))
    case 'neighbor':
      return nameOfEnd(a.link.neighborNum, a.link.neighborId).localeCompare(
        nameOfEnd(b.link.neighborNum, b.link.neighborId),
      )
    case 'signal':
      return a.link.snr - b.link.snr
    case 'other':
      return (a.other?.snr ?? Infinity) - (b.other?.snr ?? Infinity) || 0
    case 'difference':
      return (a.difference ?? -1) - (b.difference ?? -1)
    case 'reported':
      return a.at - b.at
    default:
      return by satisfies never
  }
}

/** The name of a node, or its id while it is unknown. */
export function nameOfEnd(nodeNum: number, nodeId: string): string {
  const node = nodeByNum(nodeNum)
  return node === undefined ? nodeId : nodeName(node)
}
