import { useEffect, useRef } from 'preact/hooks'
import { Field } from '../../parts/form/field.tsx'
import { c } from '../../strings/system/configuration.ts'
import { RiskMark } from './field.tsx'
import type { FieldInfo, Leaf, Section } from './model.ts'
import { fieldHelp, fieldName, fullName } from './words.ts'

type Props = {
  section: string
  leaf: Leaf
  state: Section['secrets'][string] | undefined
  /** Undefined: unchanged; null: will be cleared. */
  value: string | null | undefined
  error: string | null
  onChange(value: string | null | undefined): void
}

/** A secret: whether it is set, and a control to replace it. Its value never leaves the radio. */
export function SecretField(props: Props) {
  const { section, leaf, value, onChange } = props
  const name = fieldName(section, leaf)
  return (
    <div
      class={value === undefined ? 'setting' : 'setting is-changed'}
      role="group"
      aria-label={fullName(section, leaf)}
    >
      <div class="secret-head">
        <strong>
          {name}
          <RiskMark field={leaf.field} />
        </strong>
        <span class="tag">{stateName(props)}</span>
        <SecretButtons {...props} name={name} />
      </div>
      {typeof value === 'string' ? (
        <NewSecret {...props} name={name} value={value} />
      ) : (
        <div class="about">
          {[fieldHelp(section, leaf), c.secretHelp].filter((text) => text !== '').join(' ')}{' '}
          {leaf.field.risk !== null && <span class="sr-only">{c.riskHelp[leaf.field.risk]}</span>}
        </div>
      )}
      {typeof value === 'string' || props.error === null || <div class="bad">{props.error}</div>}
      {value === null && (
        <button type="button" class="button small" onClick={() => onChange(undefined)}>
          {c.secretUndo}
        </button>
      )}
    </div>
  )
}

function stateName({ state, value }: Props): string {
  if (value === null) return c.secretWillClear
  if (value !== undefined && value !== '') return c.secretWillReplace
  if (state === undefined) return c.secretNotSet
  if (state.kind !== null) return c.secretKinds[state.kind]
  return state.isSet ? c.secretSet : c.secretNotSet
}

function SecretButtons({ leaf: { field }, state, value, onChange, name }: Props & { name: string }) {
  if (value !== undefined) return null
  const isSet = state?.isSet ?? false
  const replace = isSet ? c.secretReplace : c.secretSetNew
  return (
    <span class="secret-buttons">
      <button type="button" class="button small" aria-label={c.secretLabel(replace, name)} onClick={() => onChange('')}>
        {replace}
      </button>
      {isSet && canClear(field) && (
        <button
          type="button"
          class="button small"
          aria-label={c.secretLabel(c.secretClear, name)}
          onClick={() => onChange(null)}
        >
          {c.secretClear}
        </button>
      )}
    </span>
  )
}

function canClear({ sizes }: FieldInfo): boolean {
  return sizes === null || sizes.includes(0)
}

function NewSecret({ leaf: { field }, name, value, error, onChange }: Props & { name: string; value: string }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => box.current?.querySelector('input')?.focus(), [])
  return (
    <div class="stack tight" ref={box}>
      <Field
        label={c.secretNew(name)}
        type="password"
        autocomplete="new-password"
        value={value}
        error={error}
        hint={hintOf(field)}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <div class="secret-buttons">
        {field.sizes?.includes(0) && (
          <button type="button" class="button small" onClick={() => onChange(randomKey())}>
            {c.secretRandom}
          </button>
        )}
        <button type="button" class="button small" onClick={() => onChange(undefined)}>
          {c.secretUndo}
        </button>
      </div>
    </div>
  )
}

function hintOf({ type, sizes, maxBytes }: FieldInfo): string {
  if (type === 'integer') return c.secretPin
  if (sizes !== null) return sizes.includes(0) ? c.secretKeyHint : c.secretPrivateHint
  return maxBytes === null ? '' : c.maxBytes(maxBytes)
}

/** 32 bytes, base64: AES-256. */
function randomKey(): string {
  return btoa(String.fromCodePoint(...crypto.getRandomValues(new Uint8Array(32))))
}
