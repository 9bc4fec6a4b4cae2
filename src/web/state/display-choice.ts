import { effect } from '@preact/signals'
import type { Language } from '../../shared/languages.ts'
import { api, isRecord, send } from '../api.ts'
import { changeLanguage } from '../language.ts'
import { refreshStatus, status } from './session.ts'
import { UNIT_SYSTEMS, type UnitSystem } from '../../shared/mesh/unit-systems.ts'
import { type Clock, clockHours, CLOCKS, unitSystem } from '../display.ts'
import { preference } from './preferences.ts'

type Display = { readonly units: UnitSystem; readonly clock: Clock }

/** How this user reads measurements and times in this browser. */
export const displayChoice = preference<Display>('display', { units: 'metric', clock: '24' }, (found) => {
  if (!isRecord(found)) return null
  const units = UNIT_SYSTEMS.find((known) => known === found['units'])
  const clock = CLOCKS.find((known) => known === found['clock'])
  return units === undefined || clock === undefined ? null : { units, clock }
})

/** The language that the user chose, for every browser; null: that of the browser. */
export async function chooseLanguage(language: Language | null): Promise<void> {
  await send(api.auth.preferences.$put({ json: { language } }))
  changeLanguage(language)
}

/** The units that the user chose, for every browser and for messages. */
export async function chooseUnits(units: UnitSystem): Promise<void> {
  await send(api.auth.preferences.$put({ json: { units } }))
  displayChoice.keep({ ...displayChoice.value.peek(), units })
  await refreshStatus()
}

/** Applies the user's choice to everything. */
export function applyDisplay(): void {
  effect(() => {
    const units = status.value?.units ?? null
    const kept = displayChoice.value.peek()
    if (units !== null && units !== kept.units) displayChoice.keep({ ...kept, units })
  })
  effect(() => {
    const { units, clock } = displayChoice.value.value
    unitSystem.value = units
    clockHours.value = clock
  })
}
