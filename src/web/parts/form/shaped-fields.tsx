import { Field } from './field.tsx'
import { Labelled } from './labelled.tsx'

/** A setting as a field. Without `as` it is a line of text; `no-check` is a box that is ticked when the setting is false. */
export type Shape = {
  readonly label: string
  readonly hint?: string
  /** Characters. */
  readonly maxLength: number
  readonly as?: 'number' | 'password' | 'lines' | 'text-area' | 'check' | 'no-check'
  readonly optional?: true
  /** Stands behind *More settings*. */
  readonly rare?: true
  /** Never changes once it is stored. */
  readonly isFixed?: true
}
export type Shapes = Readonly<Record<string, Shape>>

type Props = {
  shapes: Shapes
  values: Readonly<Record<string, unknown>>
  /** Whether they are stored, so that fixed ones can only be read. */
  areStored?: boolean
  /** What opens the rare ones. */
  more: string
}

/** The fields of settings, rare ones behind a heading. */
export function ShapedFields({ shapes, values, areStored = false, more }: Props) {
  const all = Object.entries(shapes)
  const rare = all.filter(([, shape]) => shape.rare === true)
  const draw = ([name, shape]: (typeof all)[number]) => (
    <OneField key={name} {...shape} name={name} value={values[name]} readOnly={areStored && shape.isFixed === true} />
  )
  return (
    <>
      {all.filter(([, shape]) => shape.rare !== true).map(draw)}
      {rare.length > 0 && (
        <details>
          <summary>{more}</summary>
          <div class="stack">{rare.map(draw)}</div>
        </details>
      )}
    </>
  )
}

function OneField(props: Shape & { name: string; value: unknown; readOnly: boolean }) {
  const { name, value, label, hint, as, optional, maxLength, readOnly } = props
  if (as === 'check' || as === 'no-check') {
    return (
      <label class="check">
        <input type="checkbox" name={name} defaultChecked={as === 'check' ? value === true : value === false} />
        {label}
      </label>
    )
  }
  const typed = {
    name,
    maxLength,
    readOnly,
    defaultValue: textOf(value),
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    required: optional !== true,
  } as const
  if (as === 'lines' || as === 'text-area') {
    return (
      <Labelled label={label} hint={hint}>
        {(aria) => <textarea {...aria} {...typed} rows={as === 'lines' ? 2 : 4} />}
      </Labelled>
    )
  }
  return (
    <Field
      label={label}
      type={as === 'password' ? 'password' : as === 'number' ? 'number' : 'text'}
      {...typed}
      {...(hint !== undefined && { hint })}
      {...(as === 'number' && { min: 1, max: 65535 })}
    />
  )
}

/** A setting as it stands in its field. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join('\n')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
