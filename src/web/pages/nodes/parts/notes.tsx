import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../../api.ts'
import { Actions } from '../../../parts/form/field.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { keepDraft, readDraft } from '../../../state/drafts.ts'
import { useAction } from '../../../state/load.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { can, user } from '../../../state/session.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { t } from '../../../strings.ts'
import { MAX_NOTES } from '../../../../shared/limits.ts'

/** What people here wrote about the node. */
export function Notes({ node, onSaved }: { node: Node; onSaved(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const draft = `${user.value?.id}:notes:${node.nodeId}`
  const edited = useSignal<string | null>(readDraft(draft) || null)
  useEffect(() => keepDraft(draft, edited.value ?? ''), [edited.value])
  if (!can('nodes', 'write')) {
    return node.notes === '' ? null : (
      <Card title={nodeTexts.notes}>
        <p class="pre">{node.notes}</p>
      </Card>
    )
  }
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void run(async () => {
      await ask(api.nodes[':id'].$put({ param: { id: node.nodeId }, json: { notes: edited.value ?? node.notes } }))
      say(t.common.saved)
      await onSaved()
      edited.value = null
    })
  }
  return (
    <Card title={nodeTexts.notes}>
      <form onSubmit={save} class="stack">
        <textarea
          aria-label={nodeTexts.notes}
          placeholder={nodeTexts.notesHint}
          rows={3}
          maxLength={MAX_NOTES}
          value={edited.value ?? node.notes}
          onInput={(event) => (edited.value = event.currentTarget.value)}
        />
        <Failure error={error.value} />
        <Actions>
          <button class="button" disabled={busy.value || edited.value === null || edited.value === node.notes}>
            {t.common.save}
          </button>
        </Actions>
      </form>
    </Card>
  )
}
