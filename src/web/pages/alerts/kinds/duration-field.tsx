import { useSignal } from '@preact/signals'
import { namesOf } from '../../../../shared/names.ts'
import { Labelled } from '../../../parts/form/labelled.tsx'
import { alertTexts } from '../../../strings/alerts.ts'

const MINUTES = { minutes: 1, hours: 60, days: 1440 } as const
type Unit = keyof typeof MINUTES

type Props = {
  label: string
  hint?: string
  minutes: number
  /** Minutes. */
  min: number
  max?: number
  /** The shortest unit that is offered. */
  shortest?: Unit
  set(minutes: number): void
}

/** A length of time: a number and its unit. */
export function DurationField({ label, hint, minutes, min, max, shortest = 'minutes', set }: Props) {
  const units = namesOf(MINUTES).filter((unit) => MINUTES[unit] >= MINUTES[shortest])
  const unit = useSignal(unitFor(minutes, units))
  // The text of a number that is being typed, as “1.” or “1.50”, stays as it is.
  const typed = useSignal<{ readonly text: string; readonly minutes: number } | null>(null)
  const size = MINUTES[unit.value]
  const text =
    typed.value?.minutes === minutes
      ? typed.value.text
      : Number.isFinite(minutes)
        ? String(shorten(minutes / size))
        : ''
  const change = (wanted: string, unitSize: number) => {
    const next = wanted === '' ? minutes : Math.round(Number(wanted) * unitSize)
    typed.value = { text: wanted, minutes: next }
    if (wanted !== '') set(next)
  }
  return (
    <Labelled label={label} hint={hint}>
      {(aria) => (
        <div class="with-unit">
          <input
            {...aria}
            type="number"
            step="any"
            required
            min={shorten(min / size)}
            {...(max !== undefined && { max: shorten(max / size) })}
            value={text}
            onInput={(event) => change(event.currentTarget.value, size)}
          />
          <select
            aria-label={alertTexts.unitOf(label)}
            value={unit.value}
            onChange={(event) => {
              const chosen = units.find((each) => each === event.currentTarget.value) ?? unit.value
              unit.value = chosen
              change(text, MINUTES[chosen])
            }}
          >
            {units.map((each) => (
              <option key={each} value={each}>
                {alertTexts.units[each]}
              </option>
            ))}
          </select>
        </div>
      )}
    </Labelled>
  )
}

/** The largest unit in which a time is a whole number. */
function unitFor(minutes: number, units: readonly Unit[]): Unit {
  const whole = units.filter((unit) => minutes > 0 && minutes % MINUTES[unit] === 0)
  return whole.at(-1) ?? units[0] ?? 'minutes'
}

const shorten = (n: number) => Number(n.toFixed(3))
