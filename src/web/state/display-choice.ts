import { effect } from '@preact/signals'
import { isRecord } from '../api.ts'
import { type Clock, clockHours, CLOCKS, UNIT_SYSTEMS, type UnitSystem, unitSystem } from '../display.ts'
import { preference } from './preferences.ts'

type Display = { readonly units: UnitSystem; readonly clock: Clock }

/** How this user reads measurements and times in this browser. */
export const displayChoice = preference<Display>('display', { units: 'metric', clock: '24' }, (found) => {
  if (!isRecord(found)) return null
  const units = UNIT_SYSTEMS.find((known) => known === found['units'])
  const clock = CLOCKS.find((known) => known === found['clock'])
  return units === undefined || clock === undefined ? null : { units, clock }
})

/** Applies the user's choice to everything. */
export function applyDisplay(): void {
  effect(() => {
    const { units, clock } = displayChoice.value.value
    unitSystem.value = units
    clockHours.value = clock
  })
}
