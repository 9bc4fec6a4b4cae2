import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import './controls.css'

type Props = {
  /** The accessible name, if `children` do not contain it. */
  label?: string
  checked: boolean
  disabled?: boolean
  hint?: ComponentChildren
  error?: string | null
  onChange(isOn: boolean): void
  children?: ComponentChildren
}

/** A switch. */
export function Switch({ label, checked, disabled = false, hint, error, onChange, children }: Props) {
  const id = useId()
  return (
    <div class="switch-row">
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          aria-label={label}
          aria-describedby={`${id}-about`}
          aria-invalid={Boolean(error)}
          checked={checked}
          disabled={disabled}
          onChange={(event) => {
            const wanted = event.currentTarget.checked
            // Keeps showing the current state until the change has succeeded.
            event.currentTarget.checked = checked
            onChange(wanted)
          }}
        />
        {children !== undefined && <span>{children}</span>}
      </label>
      <div id={`${id}-about`} class="about">
        {error ? <span class="bad">{error}</span> : hint}
      </div>
    </div>
  )
}
