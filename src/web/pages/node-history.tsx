import type { Node } from '../mesh.ts'

/** Charts of a node. Drawn where the service keeps a history that can be asked for. */
export function NodeHistory(_props: { node: Node }) {
  return null
}
