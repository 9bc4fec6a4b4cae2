import type { Signal } from '@preact/signals'
import { type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { Age } from '../../../parts/age.tsx'
import { Dialog } from '../../../parts/dialog.tsx'
import { t } from '../../../strings.ts'
import './pile.css'

type Props = { pile: Signal<readonly Node[] | null>; onChoose(nodeId: string): void }

/** Nodes that lie on top of each other on the map, to choose one by its name; null: none, and after a choice. */
export function Pile({ pile, onChoose }: Props) {
  const nodes = pile.value ?? []
  const close = () => (pile.value = null)
  return (
    <Dialog title={t.map.several(nodes.length)} onClose={close}>
      <ul class="rows pile">
        {nodes.map((node) => (
          <li key={node.nodeNum}>
            <button
              type="button"
              class="link-button"
              dir="auto"
              title={nodeName(node)}
              onClick={() => {
                close()
                onChoose(node.nodeId)
              }}
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
