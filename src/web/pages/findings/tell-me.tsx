import { useSignal } from '@preact/signals'
import { Select } from '../../parts/form/field.tsx'
import { Icon } from '../../parts/icon.tsx'
import { findingTexts } from '../../strings/mesh/findings.ts'
import { ALL } from '../alerts/kinds/fields.tsx'
import { viewOf } from '../alerts/kinds/kinds.ts'
import type { RuleOf } from '../alerts/rule.ts'
import { WatchDialog } from '../alerts/watch-dialog.tsx'
import type { Finding } from './sentence.tsx'

/** One button that creates a rule: notify all own destinations when this is found anew. */
export function TellMe({ finding: { rule: name, nodes } }: { finding: Finding }) {
  const isOpen = useSignal(false)
  const where = useSignal<'node' | 'all'>('node')
  const [node] = nodes
  if (node === undefined) return null
  const rule: RuleOf<'finding'> = {
    kind: 'finding',
    name: findingTexts.names[name],
    findings: [name],
    nodes: where.value === 'all' ? ALL : { kind: 'list', nodes: [node.nodeNum] },
  }
  return (
    <>
      <button type="button" class="button small" onClick={() => (isOpen.value = true)}>
        <Icon name="bell" />
        {findingTexts.tellMe}
      </button>
      {isOpen.value && (
        <WatchDialog
          title={findingTexts.tellMe}
          help={findingTexts.tellMeHelp}
          watching={rule}
          sentence={viewOf('finding').sentence(rule)}
          onClose={() => (isOpen.value = false)}
        >
          <Select
            label={findingTexts.where}
            value={where.value}
            options={[
              ['node', findingTexts.onlyHere(node.name ?? node.nodeId)],
              ['all', findingTexts.anywhere],
            ]}
            onChange={(chosen) => (where.value = chosen)}
          />
        </WatchDialog>
      )}
    </>
  )
}
