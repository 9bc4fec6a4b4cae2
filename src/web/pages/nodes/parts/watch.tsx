import { useSignal } from '@preact/signals'
import { SILENT_MINUTES } from '../../../../shared/alerts/alert-kinds.ts'
import { api, ask } from '../../../api.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Actions, Submit } from '../../../parts/form/field.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction } from '../../../state/load.ts'
import { type Node, nodeName } from '../../../state/mesh/nodes.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import { t } from '../../../strings.ts'
import { DurationField } from '../../alerts/kinds/duration-field.tsx'
import { Preview } from '../../alerts/preview.tsx'
import type { NewRule } from '../../alerts/rule.ts'

/** One button that creates a rule: notify all own destinations when this node falls silent. */
export function WatchNode({ node }: { node: Node }) {
  const isOpen = useSignal(false)
  const minutes = useSignal(120)
  const saving = useAction()
  const name = nodeName(node)
  const rule: NewRule = {
    kind: 'node_silent',
    name: Array.from(alertTexts.watchName(name)).slice(0, 32).join('').trim(),
    nodes: { kind: 'list', nodes: [node.nodeNum] },
    afterMinutes: minutes.value,
  }
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void saving.run(async () => {
      const { destinations } = await ask(api.alerts.destinations.$get({ query: {} }))
      const json = {
        ...rule,
        destinations: destinations.filter(({ confirmed, enabled }) => confirmed && enabled).map(({ id }) => id),
      }
      await ask(api.alerts.rules.$post({ json }))
      isOpen.value = false
      say(alertTexts.watching)
    })
  }
  return (
    <>
      <button type="button" class="button" onClick={() => (isOpen.value = true)}>
        <Icon name="bell" />
        {alertTexts.watch}
      </button>
      {isOpen.value && (
        <Dialog title={alertTexts.watch} onClose={() => (isOpen.value = false)}>
          <form class="stack" onSubmit={save}>
            <p>{alertTexts.watchHelp(name)}</p>
            <DurationField
              label={alertTexts.after}
              minutes={minutes.value}
              {...SILENT_MINUTES}
              set={(wanted) => (minutes.value = wanted)}
            />
            <Preview rule={rule} />
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
