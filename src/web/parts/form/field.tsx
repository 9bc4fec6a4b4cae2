import { useSignal } from '@preact/signals'
import { type ComponentChildren, h, type TargetedEvent } from 'preact'
import { useId } from 'preact/hooks'
import { t } from '../../strings.ts'
import { Icon } from '../icon.tsx'
import { MAX_SEARCH } from '../../../shared/limits.ts'

/** The properties of an input that this application uses. */
type InputProps = {
  type?: 'text' | 'password' | 'email' | 'number' | 'date' | 'datetime-local' | 'time'
  name?: string
  value?: string
  defaultValue?: string | number
  /** The id of a `datalist` with suggested values. */
  list?: string
  autocomplete?: 'off' | 'username' | 'username webauthn' | 'current-password' | 'new-password' | 'one-time-code'
  autocapitalize?: 'off'
  spellcheck?: boolean
  inputmode?: 'numeric'
  pattern?: string
  min?: number
  max?: number
  step?: 'any'
  maxLength?: number
  required?: boolean
  autofocus?: boolean
  readOnly?: boolean
  disabled?: boolean
  onChange?: (event: TargetedEvent<HTMLInputElement>) => void
  onInput?: (event: TargetedEvent<HTMLInputElement>) => void
}

type FieldProps = InputProps & { label: string; hint?: string; error?: string | null }

/** A labelled input with its hint and its error. */
export function Field({ label, hint, error, ...input }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {input.type === 'password' ? (
        <PasswordInput {...input} id={id} describedBy={`${id}-about`} invalid={Boolean(error)} />
      ) : (
        <Input {...input} id={id} describedBy={`${id}-about`} invalid={Boolean(error)} />
      )}
      <div id={`${id}-about`} class="about">
        {error ? <span class="bad">{error}</span> : hint}
      </div>
    </div>
  )
}

type OwnProps = InputProps & { id: string; describedBy: string; invalid: boolean }

function Input({ describedBy, invalid, ...input }: OwnProps) {
  // JSX needs to know the type of an input in advance; here it is known only on rendering.
  return h('input', {
    ...input,
    ...(input.autofocus && { ref: focus }),
    'aria-describedby': describedBy,
    'aria-invalid': invalid,
  })
}

// Browsers honour the attribute once per page, and this page stays while its content changes.
function focus(input: HTMLInputElement | null): void {
  input?.focus()
}

function PasswordInput(props: OwnProps) {
  const shown = useSignal(false)
  return (
    <div class="password">
      <Input {...props} type={shown.value ? 'text' : 'password'} autocapitalize="off" spellcheck={false} />
      <button
        type="button"
        class="icon-button"
        aria-label={shown.value ? t.signIn.hide : t.signIn.show}
        aria-pressed={shown.value}
        onClick={() => (shown.value = !shown.value)}
      >
        <Icon name="eye" />
      </button>
    </div>
  )
}

export function Select<K extends string>(props: {
  label: string
  value: K
  options: readonly (readonly [value: K, name: string])[]
  onChange(value: K): void
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={props.value}
        onChange={(event) => {
          const chosen = props.options.find(([value]) => value === event.currentTarget.value)
          if (chosen !== undefined) props.onChange(chosen[0])
        }}
      >
        {props.options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}

/** The maximum number of characters that the service searches for. */

export function SearchBox(props: { label: string; hint: string; value: string; onInput(value: string): void }) {
  return (
    <label class="search">
      <span class="sr-only">{props.label}</span>
      <Icon name="search" />
      <input
        type="search"
        placeholder={props.hint}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
        maxLength={MAX_SEARCH}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  )
}

/** A few choices side by side, of which one is active. */
export function Segments<K extends string>(props: {
  label: string
  value: K | null
  options: readonly (readonly [value: K, name: string])[]
  onChange(value: K): void
}) {
  const name = useId()
  return (
    <fieldset class="segments">
      <legend class="sr-only">{props.label}</legend>
      {props.options.map(([value, text]) => (
        <label key={value}>
          <input type="radio" name={name} checked={value === props.value} onChange={() => props.onChange(value)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  )
}

export function Submit(props: { busy: boolean; idle: string; working: string; disabled?: boolean }) {
  return (
    <button class="button primary" disabled={props.busy || props.disabled}>
      {props.busy ? props.working : props.idle}
    </button>
  )
}

/** The text fields of a form; missing ones are empty. */
export function formText(form: HTMLFormElement): (name: string) => string {
  const data = new FormData(form)
  return (name) => {
    const value = data.get(name)
    return typeof value === 'string' ? value : ''
  }
}

/** A handler of `submit`: `save` gets the form's text fields and the form, and the browser sends nothing itself. */
export function handleForm(save: (text: (name: string) => string, form: HTMLFormElement) => Promise<void>) {
  return async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget
    if (form instanceof HTMLFormElement) await save(formText(form), form)
  }
}

/** The end of a form in a dialog. */
export function SaveOrCancel({ busy, onCancel }: { busy: boolean; onCancel(): void }) {
  return (
    <Actions>
      <button type="button" class="button" onClick={onCancel}>
        {t.common.cancel}
      </button>
      <Submit busy={busy} idle={t.common.save} working={t.common.saving} />
    </Actions>
  )
}

export function Actions({ children }: { children: ComponentChildren }) {
  return <div class="form-actions">{children}</div>
}
