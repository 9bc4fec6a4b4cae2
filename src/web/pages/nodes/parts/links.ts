import { api, askAs } from '../../../api.ts'
import { useLoad } from '../../../state/load.ts'
import type { Neighbor } from '../../../state/mesh/neighbors.ts'
import { can, isAnonymous } from '../../../state/session.ts'

type List = { readonly neighbors: readonly Neighbor[] }

const POLL_MS = 60_000

/** What a node hears and who hears it; null until it is loaded. */
export function useNodeLinks(nodeId: string): readonly Neighbor[] | null {
  const { data, error } = useLoad(
    async () => {
      if (!can('info', 'read')) return []
      // People without an account share one answer for all nodes.
      const query = isAnonymous.peek() ? {} : { node: nodeId }
      const { neighbors } = await askAs<List>(api.neighbors.$get({ query }))
      return neighbors.filter((link) => link.nodeId === nodeId || link.neighborId === nodeId)
    },
    [nodeId],
    POLL_MS,
    ['neighbors'],
  )
  return data.value ?? (error.value === null ? null : [])
}

/** A neighbour, and both directions: what the node hears of it, and how the neighbour hears the node. */
export type Pair = {
  readonly nodeNum: number
  readonly hears: Neighbor | null
  readonly heard: Neighbor | null
}

/** One for each neighbour, the best signal in any direction first. */
export function pairsOf(nodeNum: number, links: readonly Neighbor[]): readonly Pair[] {
  const pairs = new Map<number, Pair>()
  for (const link of links) {
    const hears = link.nodeNum === nodeNum
    const other = hears ? link.neighborNum : link.nodeNum
    const known = pairs.get(other) ?? { nodeNum: other, hears: null, heard: null }
    pairs.set(other, hears ? { ...known, hears: link } : { ...known, heard: link })
  }
  return [...pairs.values()].toSorted((a, b) => bestOf(b) - bestOf(a))
}

function bestOf({ hears, heard }: Pair): number {
  return Math.max(hears?.snr ?? -Infinity, heard?.snr ?? -Infinity)
}
