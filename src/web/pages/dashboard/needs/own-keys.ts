import { api, ask } from '../../../api.ts'
import { type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { can } from '../../../state/session.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import type { Need } from './need.ts'

/** Radios of this service with a weak key. */
export async function readOwnKeyNeeds(own: readonly Node[]): Promise<readonly Need[]> {
  const found = await Promise.all(own.map(({ nodeId }) => ask(api.nodes[':id'].$get({ param: { id: nodeId } }))))
  return found.flatMap((node): Need[] => {
    if (!node.weakKey) return []
    const remedy = can('configuration', 'write')
      ? { path: '/configuration/security', name: needTexts.openSecurity }
      : { path: `/nodes/${node.nodeId}`, name: needTexts.openNode }
    return [
      {
        key: `key ${node.nodeNum}`,
        severity: 'error',
        text: needTexts.weakKey(nodeName(node)),
        since: null,
        details: [needTexts.weakKeyHelp],
        remedy,
      },
    ]
  })
}
