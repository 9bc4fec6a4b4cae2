import type { ComponentChildren } from 'preact'
import { MAX_RULE_NAME } from '../../../shared/limits.ts'
import { api, ask } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import { Preview } from './preview.tsx'
import type { NewRule } from './rule.ts'

type Props = {
  title: string
  help: string
  /** Tells all destinations of the user that are confirmed and on. Too long a name is cut. */
  watching: NewRule
  sentence?: string
  onClose(): void
  /** The fields of what may be chosen. */
  children: ComponentChildren
}

/** Makes an alert rule from the page of what it watches, after a preview. */
export function WatchDialog({ title, help, watching, sentence, onClose, children }: Props) {
  const name = Array.from(watching.name).slice(0, MAX_RULE_NAME).join('').trim()
  const rule = { ...watching, name }
  const saving = useAction()
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void saving.run(async () => {
      const { destinations } = await ask(api.alerts.destinations.$get({ query: {} }))
      const ids = destinations.filter(({ confirmed, enabled }) => confirmed && enabled).map(({ id }) => id)
      await ask(api.alerts.rules.$post({ json: { ...rule, destinations: ids } }))
      onClose()
      say(alertTexts.watching)
    })
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={save}>
        <p>{help}</p>
        {children}
        <Preview rule={rule} {...(sentence !== undefined && { sentence })} />
        <Failure error={saving.error.value} />
        <Actions>
          <Submit busy={saving.busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      </form>
    </Dialog>
  )
}
