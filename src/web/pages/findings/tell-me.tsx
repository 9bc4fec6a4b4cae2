import { useSignal } from '@preact/signals'
import { MAX_RULE_NAME } from '../../../shared/limits.ts'
import { api, ask } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions, Select, Submit } from '../../parts/form/field.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { findingTexts } from '../../strings/mesh/findings.ts'
import { t } from '../../strings.ts'
import { ALL } from '../alerts/kinds/fields.tsx'
import { viewOf } from '../alerts/kinds/kinds.ts'
import { Preview } from '../alerts/preview.tsx'
import type { RuleOf } from '../alerts/rule.ts'
import type { Finding } from './sentence.tsx'

/** One button that creates a rule: notify all own destinations when this is found anew. */
export function TellMe({ finding: { rule: name, nodes } }: { finding: Finding }) {
  const isOpen = useSignal(false)
  const where = useSignal<'node' | 'all'>('node')
  const saving = useAction()
  const [node] = nodes
  if (node === undefined) return null
  const rule: RuleOf<'finding'> = {
    kind: 'finding',
    name: Array.from(findingTexts.names[name]).slice(0, MAX_RULE_NAME).join('').trim(),
    findings: [name],
    nodes: where.value === 'all' ? ALL : { kind: 'list', nodes: [node.nodeNum] },
  }
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void saving.run(async () => {
      const { destinations } = await ask(api.alerts.destinations.$get({ query: {} }))
      const ids = destinations.filter(({ confirmed, enabled }) => confirmed && enabled).map(({ id }) => id)
      await ask(api.alerts.rules.$post({ json: { ...rule, destinations: ids } }))
      isOpen.value = false
      say(alertTexts.watching)
    })
  }
  return (
    <>
      <button type="button" class="button small" onClick={() => (isOpen.value = true)}>
        <Icon name="bell" />
        {findingTexts.tellMe}
      </button>
      {isOpen.value && (
        <Dialog title={findingTexts.tellMe} onClose={() => (isOpen.value = false)}>
          <form class="stack" onSubmit={save}>
            <p>{findingTexts.tellMeHelp}</p>
            <Select
              label={findingTexts.where}
              value={where.value}
              options={[
                ['node', findingTexts.onlyHere(node.name ?? node.nodeId)],
                ['all', findingTexts.anywhere],
              ]}
              onChange={(chosen) => (where.value = chosen)}
            />
            <Preview rule={rule} sentence={viewOf('finding').sentence(rule)} />
            <Failure error={saving.error.value} />
            <Actions>
              <Submit busy={saving.busy.value} idle={t.common.save} working={t.common.saving} />
            </Actions>
          </form>
        </Dialog>
      )}
    </>
  )
}
