import type { ComponentChildren } from 'preact'
import { problemWords } from '../../strings/system/radio-problems.ts'

/** A connection in a list: its state as a dot and a word, and why it does not work. `actions` stand at its end. */
export function LinkRow(props: {
  state: string
  name: string
  word: string
  reason: string | null
  children: ComponentChildren
  actions?: ComponentChildren
}) {
  return (
    <li>
      <div class="grow">
        <div class={`link-state link-${props.state}`}>
          <span class="dot" aria-hidden="true" />
          <strong class="break">{props.name}</strong> {props.word}
        </div>
        <div class="faint">{props.children}</div>
        {props.reason !== null && props.state !== 'handshake' && <div class="bad">{problemWords(props.reason)}</div>}
      </div>
      {props.actions !== undefined && <div class="row-actions">{props.actions}</div>}
    </li>
  )
}
