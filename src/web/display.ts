import type { UnitSystem } from '../shared/mesh/unit-systems.ts'
import { signal } from '@preact/signals'

export const CLOCKS = ['24', '12'] as const
export type Clock = (typeof CLOCKS)[number]

/** How this user reads measurements and times; `state/display-choice.ts` stores it. */
export const unitSystem = signal<UnitSystem>('metric')
export const clockHours = signal<Clock>('24')
