import type { ComponentChildren } from 'preact'
import { href } from '../../router.ts'

export type NamedNode = { readonly nodeId: string; readonly name: string | null }

const FIRST_MARK = 0xe000
const MARKS = /[\ue000-\uf8ff]/

/** Stands in a sentence for the node of this index, because its name may be a part of the sentence by chance. */
export function markOf(index: number): string {
  return String.fromCodePoint(FIRST_MARK + index)
}

/** A sentence with the names of nodes instead of their marks, which lead to their pages. */
export function linkNames(text: string, nodes: readonly NamedNode[]): ComponentChildren {
  const parts: ComponentChildren[] = []
  let rest = text
  for (let at = rest.search(MARKS); at !== -1; at = rest.search(MARKS)) {
    const node = nodes[(rest.codePointAt(at) ?? 0) - FIRST_MARK]
    parts.push(rest.slice(0, at))
    if (node !== undefined) {
      parts.push(
        <a href={href(`/nodes/${node.nodeId}`)}>
          <bdi>{node.name ?? node.nodeId}</bdi>
        </a>,
      )
    }
    rest = rest.slice(at + 1)
  }
  return [...parts, rest]
}
