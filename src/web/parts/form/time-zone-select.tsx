import { zoneName } from '../../format.ts'
import { Labelled } from './labelled.tsx'

type Props = { label: string; hint?: string; error?: string | null; value: string; onChange(zone: string): void }

/** Chooses one of the time zones that this browser knows, and the present one. */
export function TimeZoneSelect({ value, onChange, ...labelled }: Props) {
  const zones = [...new Set(['UTC', zoneName(), value, ...Intl.supportedValuesOf('timeZone')])].toSorted()
  return (
    <Labelled {...labelled}>
      {(aria) => (
        <select {...aria} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {zones.map((zone) => (
            <option key={zone} value={zone}>
              {zone.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  )
}
