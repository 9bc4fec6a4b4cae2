import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, askAs } from '../../api.ts'
import { MAX_SEARCH } from '../../../shared/limits.ts'
import { isCalled, isListHere, type Node, nodeName, nodes, useNames } from './nodes.ts'

/** If more nodes match, the service returns those heard latest. */
export const MAX_FOUND = 50
/** A search begins after this pause in typing. */
const PAUSE_MS = 200

/**
 * The nodes called `wanted`, in lower case; names that begin with it come first. Null: no search, or no answer yet. If
 * not all nodes are here, the service looks for them.
 */
export function useFoundNodes(wanted: string | null): readonly Node[] | null {
  useNames()
  const found = useSignal<{ readonly wanted: string; readonly nodes: readonly Node[] } | null>(null)
  const isHere = isListHere()
  useEffect(() => {
    if (wanted === null || isHere) return
    let isOver = false
    const look = async () => {
      const known = await ask(wanted)
      if (!isOver) found.value = { wanted, nodes: known }
    }
    const timer = setTimeout(() => void look(), wanted === '' ? 0 : PAUSE_MS)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [wanted, isHere])
  if (wanted === null) return null
  if (isHere)
    return sort(
      (nodes.value ?? []).filter((node) => isCalled(node, wanted)),
      wanted,
    )
  return found.value?.wanted === wanted ? sort(found.value.nodes, wanted) : null
}

async function ask(wanted: string): Promise<readonly Node[]> {
  const limit = String(MAX_FOUND)
  const isNumber = /^[1-9]\d{5,9}$/.test(wanted) && Number(wanted) < 2 ** 32 - 1
  const asked = [
    api.nodes.$get({ query: { limit, ...(wanted !== '' && { q: wanted.slice(0, MAX_SEARCH) }) } }),
    ...(isNumber ? [api.nodes.$get({ query: { ids: wanted } })] : []),
  ]
  try {
    return (await Promise.all(asked.map((one) => askAs<Node[]>(one)))).flat()
  } catch {
    // While the service is unreachable, searches the nodes that this browser knows.
    return (nodes.peek() ?? []).filter((node) => isCalled(node, wanted))
  }
}

function sort(found: readonly Node[], wanted: string): readonly Node[] {
  const rank = (node: Node) => (nodeName(node).toLowerCase().startsWith(wanted) ? 0 : 1)
  return found.toSorted((a, b) => rank(a) - rank(b) || nodeName(a).localeCompare(nodeName(b)))
}
