import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { api, askAs } from '../../../api.ts'
import { useLoad } from '../../../state/load.ts'
import { type Range, rangeKey, timesOf } from '../../../state/range.ts'
import type { Arranged, Lost, Order } from './arrange.worker.ts'
import { pairsOf, type TopologyEdge } from './links.ts'

const POLL_MS = 60_000

type Topology = {
  readonly edges: readonly TopologyEdge[]
  readonly receivers: readonly number[]
  readonly isWhole: boolean
}

/** Who heard whom for the last time in a range, with both directions of a pair together. */
export function useTopology(range: Range) {
  const load = () => askAs<Topology>(api.topology.$get({ query: timesOf(range) }))
  const loaded = useLoad(load, [rangeKey(range)], POLL_MS)
  const found = loaded.data.value
  const pairs = useMemo(() => pairsOf(found?.edges ?? []), [found])
  const nums = useMemo(() => [...new Set(pairs.flatMap(({ a, b }) => [a, b]))].toSorted((a, b) => a - b), [pairs])
  const receivers = useMemo(() => new Set(found?.receivers ?? []), [found])
  return { ...loaded, pairs, nums, receivers, isWhole: found?.isWhole ?? true }
}

export type Graph = Pick<ReturnType<typeof useTopology>, 'pairs' | 'nums' | 'receivers'>

/** Where each node is drawn, by its number: x and y. */
export type Places = ReadonlyMap<number, readonly [x: number, y: number]>
const NOWHERE: Places = new Map()

export type Arrangement = {
  readonly places: ReadonlySignal<Places>
  /** Null: not reckoned yet. */
  readonly lost: ReadonlySignal<readonly Lost[] | null>
  readonly isDone: ReadonlySignal<boolean>
  readonly hasFailed: ReadonlySignal<boolean>
}

/** Arranges the nodes on another thread, from where they were before. */
export function useArrangement({ pairs, nums, receivers }: Graph): Arrangement {
  const places = useSignal<Places>(NOWHERE)
  const lost = useSignal<readonly Lost[] | null>(null)
  const isDone = useSignal(true)
  const hasFailed = useSignal(false)
  // Signals and ages change all the time; the arrangement depends on who is linked to whom.
  const shape = pairs.map(({ a, b }) => `${a} ${b}`).join()
  const roots = [...receivers].toSorted((a, b) => a - b).join()
  const latest = useRef({ pairs, nums, receivers })
  latest.current = { pairs, nums, receivers }
  useEffect(() => {
    if (shape === '') return
    const graph = latest.current
    const indexOf = new Map(graph.nums.map((num, index) => [num, index]))
    const order: Order = {
      nums: graph.nums,
      links: graph.pairs.map(({ a, b }) => [indexOf.get(a) ?? 0, indexOf.get(b) ?? 0]),
      roots: [...graph.receivers],
      before: graph.nums.map((num) => places.peek().get(num) ?? null),
    }
    const worker = new Worker(new URL('./arrange.worker.ts', import.meta.url), { type: 'module' })
    isDone.value = false
    if (graph.receivers.size === 0) lost.value = null
    worker.addEventListener('message', ({ data }: MessageEvent<Arranged>) => {
      if (data.kind === 'lost') {
        lost.value = data.lost
        return
      }
      const { xy } = data
      places.value = new Map(graph.nums.map((num, index) => [num, [xy[2 * index] ?? 0, xy[2 * index + 1] ?? 0]]))
      isDone.value = data.isDone
      if (data.isDone) worker.terminate()
    })
    worker.addEventListener('error', () => {
      isDone.value = true
      hasFailed.value = true
    })
    worker.postMessage(order, [])
    return () => worker.terminate()
  }, [shape, roots])
  return { places, lost, isDone, hasFailed }
}
