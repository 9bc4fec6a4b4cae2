import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import './controls.css'

type Aria = { readonly id: string; readonly 'aria-describedby': string; readonly 'aria-invalid': boolean }

/** The label, the hint and the error of a control that `children` renders with the given attributes. */
export function Labelled(props: {
  label: ComponentChildren
  hint?: ComponentChildren
  error?: string | null
  children(aria: Aria): ComponentChildren
}) {
  const id = useId()
  const isInvalid = props.error !== null && props.error !== undefined
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.children({ id, 'aria-describedby': `${id}-about`, 'aria-invalid': isInvalid })}
      <div id={`${id}-about`} class="about">
        {isInvalid ? <span class="bad">{props.error}</span> : props.hint}
      </div>
    </div>
  )
}

/** Several controls that belong together, with their hint and their error. */
export function Group(props: {
  legend: string
  hint?: ComponentChildren
  error?: string | null
  children: ComponentChildren
}) {
  const id = useId()
  return (
    <fieldset class="group" aria-describedby={`${id}-about`}>
      <legend>{props.legend}</legend>
      {props.children}
      <div id={`${id}-about`} class="about">
        {props.error ? <span class="bad">{props.error}</span> : props.hint}
      </div>
    </fieldset>
  )
}
