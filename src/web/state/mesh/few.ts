import type { Node } from '../../../app/mesh/nodes/nodes.ts'
import { api, askAs, reconnects } from '../../api.ts'
import { few, listUsers } from './known-nodes.ts'
import { can, isAnonymous } from '../session.ts'

/** Requested nodes, whether or not the service knows them. */
const asked = new Set<number>()
let waiting = new Set<number>()
/** Shown by their numbers until the service is back. */
const failed = new Set<number>()
let timer: ReturnType<typeof setTimeout> | undefined

/** The maximum number of nodes in one request. */
const MAX_AT_ONCE = 100
/** Nodes that a page draws within this time are requested together. */
const PAUSE_MS = 30

/** Loads a node, together with the others that are wanted at the same time. */
export function wantNode(nodeNum: number): void {
  if (asked.has(nodeNum)) return
  asked.add(nodeNum)
  ask([nodeNum])
}

/** Reloads the nodes, because they may have changed unnoticed. */
export function renewFew(): void {
  ask(asked)
}

reconnects.subscribe(() => {
  ask(failed)
  failed.clear()
})

/** Drops all nodes: the list of all nodes is loaded, or another user signed in. */
export function dropFew(): void {
  asked.clear()
  waiting.clear()
  failed.clear()
  few.value = new Map()
}

/** Applies an event about a node. Null: it was deleted; no changes: the node is loaded. */
export function changeFew(nodeNum: number, changes: Partial<Node> | null): void {
  if (!asked.has(nodeNum)) return
  const next = new Map(few.peek())
  const before = next.get(nodeNum)
  if (changes === null) next.delete(nodeNum)
  else if (before !== undefined && Object.keys(changes).length > 0) next.set(nodeNum, { ...before, ...changes })
  else return ask([nodeNum])
  few.value = next
}

function ask(nodeNums: Iterable<number>): void {
  for (const nodeNum of nodeNums) waiting.add(nodeNum)
  if (waiting.size > 0) timer ??= setTimeout(() => void load(), PAUSE_MS)
}

async function load(): Promise<void> {
  const wanted = [...waiting]
  waiting = new Set()
  timer = undefined
  // People without an account cannot request single nodes.
  if (listUsers.peek() > 0 || !can('nodes', 'read') || isAnonymous.peek()) {
    for (const nodeNum of wanted) asked.delete(nodeNum)
    return
  }
  for (let at = 0; at < wanted.length; at += MAX_AT_ONCE) {
    const part = wanted.slice(at, at + MAX_AT_ONCE)
    try {
      const found = await askAs<Node[]>(api.nodes.$get({ query: { ids: part.join(',') } }))
      if (found.length > 0) few.value = new Map([...few.peek(), ...found.map((node) => [node.nodeNum, node] as const)])
    } catch {
      for (const nodeNum of part) failed.add(nodeNum)
    }
  }
}
