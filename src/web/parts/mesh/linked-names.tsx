import type { ComponentChildren } from 'preact'
import { href } from '../../router.ts'

export type NamedNode = { readonly nodeId: string; readonly name: string | null }

export function nameOrId({ nodeId, name }: NamedNode): string {
  return name ?? nodeId
}

/** A sentence in which the names of nodes lead to their pages. */
export function linkNames(text: string, nodes: readonly NamedNode[]): ComponentChildren {
  return nodes.reduce<ComponentChildren[]>(
    (parts, node) =>
      parts.flatMap((part) => {
        const name = nameOrId(node)
        const at = typeof part === 'string' ? part.indexOf(name) : -1
        if (typeof part !== 'string' || at === -1) return [part]
        const link = (
          <a href={href(`/nodes/${node.nodeId}`)} key={`${node.nodeId} ${at}`}>
            <bdi>{name}</bdi>
          </a>
        )
        return [part.slice(0, at), link, part.slice(at + name.length)]
      }),
    [text],
  )
}
