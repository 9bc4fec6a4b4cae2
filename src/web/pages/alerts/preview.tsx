import './alerts.css'
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { DAY_MS } from '../../../shared/time.ts'
import { api, ask } from '../../api.ts'
import { count, dateTime, plain } from '../../format.ts'
import { Failure } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { alertTexts } from '../../strings/alerts.ts'
import type { NewRule } from './rule.ts'

/** Nodes that are named. */
const MAX_NAMED = 10

type Found = Awaited<ReturnType<typeof lookBack>>

/** A rule as a sentence, and on request when it would have fired in the last days. */
export function Preview({ rule, sentence }: { rule: NewRule; sentence?: string }) {
  const looking = useAction()
  const found = useSignal<{ readonly of: string; readonly what: Found } | null>(null)
  const result = useRef<HTMLDivElement>(null)
  const watches = watchedBy(rule)
  const look = () =>
    void looking.run(async () => {
      found.value = { of: watches, what: await lookBack(rule) }
    })
  // What another rule would have done says nothing about this one.
  const shown = found.value?.of === watches ? found.value.what : null
  useEffect(() => result.current?.scrollIntoView({ block: 'nearest' }), [shown])
  return (
    <>
      <div class="preview-head">
        {sentence !== undefined && <p>{sentence}.</p>}
        <button type="button" class="button" disabled={looking.busy.value} onClick={look}>
          {looking.busy.value ? alertTexts.previewing : alertTexts.preview}
        </button>
      </div>
      <Failure error={looking.error.value} />
      {shown !== null && (
        <div class="preview-found" role="status" ref={result}>
          <strong>
            {alertTexts.previewTotal(Math.round((shown.to - shown.from) / DAY_MS), shown.total, shown.messages)}
          </strong>
          {shown.looked !== null && <p class="faint">{lookedAt(shown.looked)}</p>}
          {shown.note !== null && <p class="faint">{shown.note}</p>}
          <ul class="rows tight">
            {shown.fires.slice(0, 10).map(({ at, what, nodeNum }) => (
              <li key={`${at} ${nodeNum}`}>
                <span class="grow break">{what}</span> <span class="faint">{dateTime(at)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}

function lookedAt({ total, nodes }: NonNullable<Found['looked']>): string {
  const named = nodes.slice(0, MAX_NAMED)
  const names = named.map(({ name }) => plain(name)).join(', ')
  return alertTexts.lookedAt(total, total > named.length ? `${names} +${count(total - named.length)}` : names)
}

/** What a rule watches, without what does not change when it fires. */
function watchedBy(rule: NewRule): string {
  return JSON.stringify({ ...rule, name: '', destinations: [], urgent: false, repeatHours: null, tellResolved: true })
}

const lookBack = (json: NewRule) => ask(api.alerts.rules.preview.$post({ json }))
