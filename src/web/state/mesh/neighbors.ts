import { useMemo, useRef } from 'preact/hooks'
import type { Neighbor } from '../../../app/mesh/topology/topology.ts'
import { api, askAs } from '../../api.ts'
import type { LiveEvent } from '../live.ts'
import { type Loaded, useLoad } from '../load.ts'
import { isAnonymous } from '../session.ts'
import { createTagged } from '../tagged.ts'

export type { Neighbor }
type List = { readonly neighbors: readonly Neighbor[] }

/** Without events. Nodes report their neighbours every few hours. */
const POLL_MS = 60_000
/** Reports within this time are loaded together. */
const GAP_MS = 15_000
/** The maximum number of nodes in one request. */
const MAX_AT_ONCE = 100

/** Who hears whom, kept up to date: after a report only the links of its node are loaded. Null: not wanted. */
export function useNeighbors(isWanted: boolean): Loaded<readonly Neighbor[] | null> {
  const all = useMemo(() => createTagged<List>(), [])
  const known = useRef<readonly Neighbor[] | null>(null)
  /** The nodes that have reported since the last load; null: any may have. */
  const reported = useRef<ReadonlySet<number> | null>(null)
  const note = (event: LiveEvent) => {
    const nodeNum = event?.data['nodeNum']
    const before = reported.current
    reported.current = typeof nodeNum === 'number' && before !== null ? new Set([...before, nodeNum]) : null
    return !isWanted
  }
  const load = async () => {
    if (!isWanted) return null
    const nums = reported.current
    const before = known.current
    reported.current = new Set()
    try {
      // People without an account share one answer.
      const isFew = !isAnonymous.peek() && before !== null && nums !== null && nums.size > 0 && nums.size <= MAX_AT_ONCE
      known.current = isFew ? await withReports(before, nums) : (await all.read(readAll)).neighbors
      return known.current
    } catch (error) {
      reported.current = null
      throw error
    }
  }
  return useLoad(load, [isWanted], isWanted ? POLL_MS : undefined, ['neighbors'], note, null, GAP_MS)
}

const readAll = (options: { headers: Record<string, string> }) => api.neighbors.$get({ query: {} }, options)

/** The links with the latest reports of these nodes: each replaces the earlier one of the same node. */
async function withReports(links: readonly Neighbor[], nums: ReadonlySet<number>): Promise<readonly Neighbor[]> {
  const { neighbors } = await askAs<List>(api.neighbors.$get({ query: { ids: [...nums].join(',') } }))
  return [...neighbors, ...links.filter(({ nodeNum }) => !nums.has(nodeNum))]
}
