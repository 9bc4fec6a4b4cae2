import { precisionMeters } from '../../state/mesh/nodes.ts'
import { decimal } from '../../format.ts'
import { distance } from '../../measure.ts'
import { Icon } from '../../parts/icon.tsx'
import { Group, Labelled } from '../../parts/form/labelled.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { c } from '../../strings/system/configuration.ts'
import { type FieldInfo, type Leaf, linesOf, type Raw } from './model.ts'
import { asDistance, asDuration, fieldHelp, fieldName, isSeconds, optionName } from './words.ts'

type Props = {
  section: string
  leaf: Leaf
  value: Raw
  isChanged: boolean
  error: string | null
  onChange(raw: Raw): void
}

/** A non-secret setting, with the control for its type. */
export function SettingField(props: Props) {
  const { section, leaf, value, onChange } = props
  const { field } = leaf
  const name = fieldName(section, leaf)
  const hint = <Hint {...props} />
  if (typeof value === 'boolean') {
    return (
      <div class={props.isChanged ? 'setting is-changed' : 'setting'}>
        <Switch checked={value} hint={hint} error={props.error} onChange={onChange}>
          {name}
          <RiskMark field={field} />
        </Switch>
      </div>
    )
  }
  if (leaf.field.type === 'flags') {
    return (
      <div class={props.isChanged ? 'setting wide-setting is-changed' : 'setting wide-setting'}>
        <Group legend={name} hint={hint} error={props.error}>
          <Flags field={leaf.field} value={value} onChange={onChange} />
        </Group>
      </div>
    )
  }
  return (
    <div class={props.isChanged ? 'setting is-changed' : 'setting'}>
      <Labelled
        label={
          <>
            {name}
            <RiskMark field={field} />
          </>
        }
        hint={hint}
        error={props.error}
      >
        {(aria) => <Control {...aria} field={field} value={value} onChange={onChange} />}
      </Labelled>
    </div>
  )
}

/** Advice that is shown before a change. */
function Hint({ section, leaf, value }: Props) {
  const { field } = leaf
  const metres = asDistance(leaf, value)
  const time = isSeconds(section, leaf) ? asDuration(value) : ''
  const parts = [
    fieldHelp(section, leaf),
    isSeconds(section, leaf) && !fieldHelp(section, leaf).startsWith(c.seconds) ? c.seconds : '',
    time === '' ? '' : c.equals(time),
    metres === '' ? '' : c.equals(metres),
    fieldHelp(section, leaf) === '' || field.list ? boundsOf(field) : '',
    field.maxBytes === null || field.list || typeof value === 'boolean'
      ? ''
      : c.bytes(new TextEncoder().encode(value).length, field.maxBytes),
  ]
  const shown = parts.filter((part) => part !== '')
  return (
    <>
      {shown.join(' · ').replace(` · ${c.equals('')}`, ` ${c.equals('')}`)}
      {field.risk !== null && <span class="sr-only"> {c.riskHelp[field.risk]}</span>}
    </>
  )
}

/** Marks settings that need a confirmation; the hint says so in words. */
export function RiskMark({ field: { risk } }: { field: FieldInfo }) {
  if (risk === null) return null
  return (
    <span class="risk" title={c.riskHelp[risk]} aria-hidden="true">
      <Icon name="warning" />
    </span>
  )
}

/** The limits of the whole number type, which help nobody, are not shown. */
function boundsOf({ type, min, max, list, maxItems, path, options }: FieldInfo): string {
  if (type === 'ipv4') return c.ipv4
  if (list) return type === 'bytes' ? c.keys(maxItems ?? 0) : c.perLine(maxItems ?? 0)
  if (type !== 'integer' || options !== null || path.endsWith(PRECISION)) return ''
  return min !== null && max !== null && max < 0xffff ? c.between(decimal(min), decimal(max)) : ''
}

const PRECISION = 'positionPrecision'
/** Precisions in bits that are worth offering; with each bit, cells halve. */
const PRECISIONS = [0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 32]

type ControlProps = {
  id: string
  'aria-describedby': string
  'aria-invalid': boolean
  field: FieldInfo
  value: string
  onChange(raw: string): void
}

function Control({ field, value, onChange, ...aria }: ControlProps) {
  const choices = choicesOf(field, value)
  if (choices !== null) {
    return (
      <select {...aria} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {choices.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    )
  }
  if (field.list) {
    return (
      <textarea
        {...aria}
        class="mono"
        rows={Math.min(4, Math.max(2, field.maxItems ?? 2))}
        value={value}
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    )
  }
  const isNumber = field.type === 'integer' || field.type === 'number'
  return (
    <input
      {...aria}
      type="text"
      class={isNumber ? 'short' : ''}
      inputMode={field.type === 'integer' && (field.min ?? 0) >= 0 ? 'numeric' : 'text'}
      value={value}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** A box for each flag. The radio's flags without a name here stay as they are. */
function Flags({ field, value, onChange }: Pick<ControlProps, 'field' | 'value' | 'onChange'>) {
  const set = linesOf(value)
  const known = field.options ?? []
  const unknown = set.filter((flag) => !known.includes(flag))
  const turn = (flag: string, isOn: boolean) =>
    onChange([...known.filter((one) => (one === flag ? isOn : set.includes(one))), ...unknown].join('\n'))
  return (
    <div class="flags">
      {[...known, ...unknown].map((flag) => (
        <label class="check" key={flag}>
          <input
            type="checkbox"
            checked={set.includes(flag)}
            disabled={unknown.includes(flag)}
            onChange={(event) => turn(flag, event.currentTarget.checked)}
          />
          {optionName(field, flag)}
        </label>
      ))}
    </div>
  )
}

function choicesOf(field: FieldInfo, value: string): readonly (readonly [value: string, name: string])[] | null {
  if (field.path.endsWith(PRECISION)) {
    const offered = [...new Set([...PRECISIONS, Number(value)])].toSorted((a, b) => a - b)
    return offered.map((bits) => [String(bits), precisionName(bits)])
  }
  if (field.options === null) return null
  // Newer firmware may have other options.
  const all = field.options.includes(value) ? field.options : [value, ...field.options]
  return all.map((option) => [option, optionName(field, option)])
}

export function precisionName(bits: number): string {
  if (bits === 0) return c.precision.none
  if (bits === 32) return c.precision.exact
  const metres = precisionMeters(bits)
  if (metres === null) return c.precisionBits(bits)
  return c.precision.within(distance(metres))
}
