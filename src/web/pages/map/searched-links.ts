import { useMemo } from 'preact/hooks'
import { isCalled, nodeByNum, nodes } from '../../state/mesh/nodes.ts'
import type { Link } from './layers/lines.ts'

const NO_ENDS: ReadonlySet<number> = new Set()

/** The links of nodes called like that, and the nodes at both of their ends; without a search all links, but no ends. */
export function useLinksOf(links: readonly Link[], q: string) {
  const wanted = q.trim().toLowerCase()
  const isIt = (nodeNum: number) => {
    const node = nodeByNum(nodeNum)
    return node !== undefined && isCalled(node, wanted)
  }
  const known = wanted === '' ? null : nodes.value
  return useMemo(() => {
    if (wanted === '') return { links, ends: NO_ENDS }
    const found = links.filter(({ nodeNum, neighborNum }) => isIt(nodeNum) || isIt(neighborNum))
    return { links: found, ends: new Set(found.flatMap(({ nodeNum, neighborNum }) => [nodeNum, neighborNum])) }
  }, [links, wanted, known])
}
