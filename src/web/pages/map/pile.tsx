import { type Node, nodeName } from '../../state/mesh/nodes.ts'
import { Age } from '../../parts/age.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { t } from '../../strings.ts'

type Props = { nodes: readonly Node[]; onChoose(nodeId: string): void; onClose(): void }

/** Nodes that lie on top of each other on the map, to choose one by its name. */
export function Pile({ nodes, onChoose, onClose }: Props) {
  return (
    <Dialog title={t.map.several(nodes.length)} onClose={onClose}>
      <ul class="rows pile">
        {nodes.map((node) => (
          <li key={node.nodeNum}>
            <button
              type="button"
              class="link-button"
              dir="auto"
              title={nodeName(node)}
              onClick={() => onChoose(node.nodeId)}
            >
              {nodeName(node)}
            </button>
            <Age at={node.lastHeard} short />
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
