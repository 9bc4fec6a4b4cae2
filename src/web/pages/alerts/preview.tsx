import { useSignal } from '@preact/signals'
import { api, ask } from '../../api.ts'
import { dateTime } from '../../format.ts'
import { Failure } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { alertTexts } from '../../strings/alerts.ts'
import type { NewRule } from './rule.ts'

/** Shows, on request, when a rule would have fired in the last days. */
export function Preview({ rule }: { rule: NewRule }) {
  const looking = useAction()
  const found = useSignal<Awaited<ReturnType<typeof lookBack>> | null>(null)
  const look = () =>
    void looking.run(async () => {
      found.value = await lookBack(rule)
    })
  return (
    <div class="stack">
      <button type="button" class="button" disabled={looking.busy.value} onClick={look}>
        {looking.busy.value ? alertTexts.previewing : alertTexts.preview}
      </button>
      <Failure error={looking.error.value} />
      {found.value !== null && (
        <div role="status">
          <strong>{alertTexts.previewTotal(found.value.total, found.value.messages)}</strong>
          {found.value.note !== null && <p class="faint">{found.value.note}</p>}
          <ul class="rows tight">
            {found.value.fires.slice(0, 10).map(({ at, what, nodeNum }) => (
              <li key={`${at} ${nodeNum}`}>
                <span class="grow break">{what}</span> <span class="faint">{dateTime(at)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  )
}

const lookBack = (json: NewRule) => ask(api.alerts.rules.preview.$post({ json }))
