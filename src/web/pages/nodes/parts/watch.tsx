import { useSignal } from '@preact/signals'
import { SILENT_MINUTES } from '../../../../shared/alerts/alert-kinds.ts'
import { Icon } from '../../../parts/icon.tsx'
import { type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import { DurationField } from '../../alerts/kinds/duration-field.tsx'
import type { NewRule } from '../../alerts/rule.ts'
import { WatchDialog } from '../../alerts/watch-dialog.tsx'

/** One button that creates a rule: notify all own destinations when this node falls silent. */
export function WatchNode({ node }: { node: Node }) {
  const isOpen = useSignal(false)
  const minutes = useSignal(120)
  const name = nodeName(node)
  const rule: NewRule = {
    kind: 'node_silent',
    name: alertTexts.watchName(name),
    nodes: { kind: 'list', nodes: [node.nodeNum] },
    afterMinutes: minutes.value,
  }
  return (
    <>
      <button type="button" class="button" onClick={() => (isOpen.value = true)}>
        <Icon name="bell" />
        {alertTexts.watch}
      </button>
      {isOpen.value && (
        <WatchDialog
          title={alertTexts.watch}
          help={alertTexts.watchHelp(name)}
          watching={rule}
          onClose={() => (isOpen.value = false)}
        >
          <DurationField
            label={alertTexts.after}
            minutes={minutes.value}
            {...SILENT_MINUTES}
            set={(wanted) => (minutes.value = wanted)}
          />
        </WatchDialog>
      )}
    </>
  )
}
