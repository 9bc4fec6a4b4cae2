import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import { t } from '../strings.ts'
import { Icon } from './icon.tsx'
import { say } from './notice.tsx'

/** Copies a text, or selects it if the browser has no clipboard. Browsers have one only over HTTPS. */
async function copyText(text: string, shown: RefObject<HTMLElement | null>): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    if (shown.current !== null) getSelection()?.selectAllChildren(shown.current)
    return false
  }
}

/** A text that is shown only once, or that must be copied exactly. */
export function CopyText({ text, label }: { text: string; label: string }) {
  const copied = useSignal(false)
  const output = useRef<HTMLElement>(null)
  return (
    <div class="copy">
      <code ref={output} aria-label={label}>
        {text}
      </code>
      <button type="button" class="button small" onClick={async () => (copied.value = await copyText(text, output))}>
        {copied.value ? t.common.copied : t.common.copy}
      </button>
    </div>
  )
}

/** A short value to copy, such as an ID, beside others. `name` is its label. */
export function Copyable({ text, name }: { text: string; name: string }) {
  const output = useRef<HTMLSpanElement>(null)
  const label = t.common.copyOf(name)
  const copy = async () => {
    if (await copyText(text, output)) say(t.common.copiedOf(name))
  }
  return (
    <span class="copyable">
      <span class="mono break" ref={output}>
        {text}
      </span>
      <button type="button" class="icon-button" aria-label={label} title={label} onClick={() => void copy()}>
        <Icon name="copy" />
      </button>
    </span>
  )
}
