import { useRef } from 'preact/hooks'
import { Labelled } from '../../parts/form/labelled.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { can } from '../../state/session.ts'
import { a } from '../../strings/automation.ts'
import { type TokenName, widestText } from '../../../shared/automation/tokens.ts'
import type { Channels } from './channels.ts'
import { MAX_CRON, MAX_TEMPLATE, MAX_TEXT_BYTES } from '../../../shared/limits.ts'

/** Data that the fields of the form share. */
export type Form<Draft> = {
  readonly draft: Draft
  readonly channels: Channels
  /** Tokens that a text may contain. */
  readonly tokens: readonly TokenName[]
  /** The text with its present values; null: unknown. */
  readonly preview: string | null
  set(changes: Partial<Draft>): void
  /** The service's error at a path of the rule, or below it. */
  errorAt(path: string): string | null
}

/** A line of text or a number. `error` replaces the service's message. */
export function Line(props: {
  form: Pick<Form<unknown>, 'errorAt'>
  label: string
  hint?: string
  path: string
  value: string
  type?: 'text' | 'number'
  maxLength?: number
  error?: string
  onInput(value: string): void
}) {
  const { form, path, value } = props
  const found = form.errorAt(path)
  return (
    <Labelled
      label={props.label}
      {...(props.hint !== undefined && { hint: props.hint })}
      error={found && (props.error ?? found)}
    >
      {(aria) => (
        <input
          {...aria}
          type="text"
          inputMode={props.type === 'number' ? 'numeric' : 'text'}
          class={props.type === 'number' ? 'short' : ''}
          value={value}
          maxLength={props.maxLength}
          autocomplete="off"
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
    </Labelled>
  )
}

/** A cron pattern: its five fields, and some examples. */
export function CronField(props: {
  form: Pick<Form<unknown>, 'errorAt'>
  path: string
  value: string
  help: string
  onInput(value: string): void
}) {
  return (
    <div class="stack tight">
      <Line
        form={props.form}
        label={a.cron}
        hint={`${a.cronHint} ${props.help}`}
        path={props.path}
        value={props.value}
        maxLength={MAX_CRON}
        onInput={props.onInput}
      />
      <div class="chips">
        <span class="faint">{a.cronExamples}</span>
        {a.crons.map(([cron, name]) => (
          <button type="button" class="chip" key={cron} onClick={() => props.onInput(cron)}>
            {name}
          </button>
        ))}
      </div>
    </div>
  )
}

/** The fields of a cron pattern, separated by single spaces, however they were typed. */
export function tidy(cron: string): string {
  return cron.trim().split(/\s+/).join(' ')
}

/** Bytes of a text if each token has its maximum width. */
function widestBytes(text: string): number {
  return new TextEncoder().encode(widestText(text)).length
}

/** A text with tokens, its maximum length, and its content with present values. */
export function TemplateField(props: {
  form: Pick<Form<unknown>, 'errorAt' | 'tokens' | 'preview'>
  path: string
  value: string
  onInput(value: string): void
}) {
  const { form, value, onInput } = props
  const box = useRef<HTMLTextAreaElement>(null)
  const used = widestBytes(value)
  const over = used - MAX_TEXT_BYTES
  const insert = (token: string) => {
    const area = box.current
    if (area === null) return
    area.setRangeText(token, area.selectionStart, area.selectionEnd, 'end')
    area.focus()
    onInput(area.value)
  }
  const found = form.errorAt(props.path)
  return (
    <div class="stack tight">
      <Labelled
        label={a.text}
        error={over > 0 ? a.tooLong(over) : found}
        hint={form.preview === null ? '' : <span class="reads">{`${a.preview} ${form.preview}`}</span>}
      >
        {(aria) => (
          <textarea
            {...aria}
            ref={box}
            rows={3}
            maxLength={MAX_TEMPLATE}
            value={value}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        )}
      </Labelled>
      <div class={over > 0 ? 'about bad' : 'about'}>{a.bytes(used, MAX_TEXT_BYTES, /\{[A-Za-z]+\}/.test(value))}</div>
      <div class="chips" role="group" aria-label={a.tokens}>
        <span class="faint" aria-hidden="true">
          {a.tokens}
        </span>
        {form.tokens.map((token) => (
          <button type="button" class="chip" key={token} onClick={() => insert(`{${token}}`)}>
            {a.tokenNames[token]}
          </button>
        ))}
      </div>
    </div>
  )
}

/** Some of the eight channels. */
export function ChannelChecks(props: {
  channels: Channels
  value: readonly number[]
  onChange(value: readonly number[]): void
}) {
  const { channels, value } = props
  const offered = [...new Set([0, ...channels.used, ...value])].toSorted((a, b) => a - b)
  return (
    <div class="checks">
      {offered.map((index) => (
        <label key={index}>
          <input
            type="checkbox"
            checked={value.includes(index)}
            onChange={(event) => {
              const others = value.filter((one) => one !== index)
              props.onChange(event.currentTarget.checked ? [...others, index].toSorted((a, b) => a - b) : others)
            }}
          />
          {channels.name(index)}
          {!channels.used.includes(index) && channels.used.length > 0 && <span class="faint">({a.unused})</span>}
        </label>
      ))}
    </div>
  )
}

/** One node by its name; by its id for users who may not see nodes. */
export function NodeSelect(props: {
  label: string
  value: string
  none: string
  error?: string | null
  onChange(nodeId: string): void
}) {
  const { label, value, error = null } = props
  if (!can('nodes', 'read')) {
    return (
      <Labelled label={label} hint={a.nodeIdHint} error={error}>
        {(aria) => (
          <input
            {...aria}
            type="text"
            value={value}
            autocomplete="off"
            onInput={(event) => props.onChange(event.currentTarget.value.trim())}
          />
        )}
      </Labelled>
    )
  }
  return (
    <NodePicker
      label={label}
      value={value}
      none={props.none}
      error={error}
      isOffered={({ isLocal }) => !isLocal}
      onChoose={props.onChange}
    />
  )
}
