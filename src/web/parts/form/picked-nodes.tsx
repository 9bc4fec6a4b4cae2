import { nameOfId } from '../../state/mesh/nodes.ts'
import { t } from '../../strings.ts'
import { Icon } from '../icon.tsx'

/** Chosen nodes by name, each with a button to remove it. Nodes are !hex ids. */
export function PickedNodes({
  nodes,
  onChange,
}: {
  nodes: readonly string[]
  onChange(nodes: readonly string[]): void
}) {
  if (nodes.length === 0) return null
  return (
    <ul class="picked">
      {nodes.map((nodeId) => (
        <li key={nodeId}>
          {nameOfId(nodeId)}
          <button
            type="button"
            class="icon-button"
            aria-label={t.nodes.takeOut(nameOfId(nodeId))}
            onClick={() => onChange(nodes.filter((one) => one !== nodeId))}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  )
}
