import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect, useRef } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { stamp } from '../../format.ts'
import { useAction } from '../../state/load.ts'
import { Icon } from '../../parts/icon.tsx'
import { Failure } from '../../parts/notice.tsx'
import { auditTexts } from '../../strings/system/audit.ts'

type Part = InferResponseType<typeof api.audit.verify.$get>

/** A log of at most this many entries is verified whenever the page opens: a few seconds on a Raspberry Pi. */
const CHECKED_UNASKED = 20_000

const BREAKS = {
  changed: auditTexts.changed,
  missing: auditTexts.missing,
  unsealed: auditTexts.lostSeal,
  trim_unrecorded: auditTexts.untoldTrim,
} as const

/** Adds a part to those before it. */
function joined(before: Part | null, part: Part): Part {
  if (before === null) return part
  return {
    ...part,
    entries: before.entries + part.entries,
    unsealed: before.unsealed + part.unsealed,
    until: part.until ?? before.until,
  }
}

/** Whether the log is intact, and up to which entry. */
export function Chain() {
  const found = useSignal<Part | null>(null)
  const isOpen = useRef(true)
  const { busy, error, run } = useAction()
  const check = async (isAsked: boolean) => {
    for (let goesOn = true; goesOn;) {
      const after = found.value?.next ?? null
      const part = await ask(api.audit.verify.$get({ query: after === null ? {} : { after: String(after) } }))
      if (!isOpen.current) return
      found.value = joined(found.value, part)
      goesOn = part.next !== null && (isAsked || (part.newestId ?? 0) <= CHECKED_UNASKED)
    }
  }
  useEffect(() => {
    void run(() => check(false))
    return () => {
      isOpen.current = false
    }
  }, [])
  const part = found.value
  if (part === null) return <Failure error={error.value} />
  if (part.next === null) return <Result part={part} />
  const all = (part.newestId ?? 0) - (part.trimmed?.id ?? 0)
  return (
    <div class="stack">
      <Failure error={error.value} />
      {busy.value ? (
        <p class="faint" role="status">
          {auditTexts.checking(part.entries, all)}
        </p>
      ) : (
        <p class="faint">
          {auditTexts.unchecked}{' '}
          <button type="button" class="text-button" onClick={() => void run(() => check(true))}>
            {auditTexts.check(all)}
          </button>
        </p>
      )}
    </div>
  )
}

function Result({ part }: { part: Part }) {
  const { broken, until, trimmed, unsealed, entries } = part
  const more = [
    until === null ? null : auditTexts.until(stamp(until.timestamp), until.hash),
    unsealed === 0 ? null : auditTexts.unsealed(unsealed),
    trimmed === null ? null : auditTexts.trimmed(trimmed.id),
  ].filter((text) => text !== null)
  return (
    <div class={broken === null ? 'notice' : 'notice notice-bad'} role={broken === null ? undefined : 'alert'}>
      <Icon name={broken === null ? 'check' : 'warning'} />
      <div>
        {broken === null ? auditTexts.whole(entries - unsealed) : BREAKS[broken.reason](broken.id)}
        <div class="faint">{more.join(' ')}</div>
      </div>
    </div>
  )
}
