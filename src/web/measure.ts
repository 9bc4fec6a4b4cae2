import { shownIn } from '../shared/mesh/unit-systems.ts'
import { unitSystem } from './display.ts'
import { decimal } from './format.ts'

/** The unit in which this user reads values, or differences of values, of a unit of the service, and the conversion. */
export function shownUnit(unit: string | null, isDifference = false) {
  return shownIn(unitSystem.value, unit, isDifference)
}

/** A measured value in the units of this user, with at most `digits` decimals. */
export function measure(value: number, unit: string | null, digits: number): string {
  const shown = shownUnit(unit)
  return `${decimal(shown.convert(value), digits)}${shown.unit === null ? '' : ` ${shown.unit}`}`
}

const FEET_OF_A_MILE = 5280

/** A distance in metres, in a suitable unit. */
export function distance(meters: number): string {
  const isShort =
    unitSystem.value === 'imperial' ? shownUnit('m').convert(meters) < FEET_OF_A_MILE / 4 : Math.round(meters) < 1000
  return isShort ? measure(meters, 'm', 0) : measure(meters / 1000, 'km', 1)
}

/** An altitude in metres. */
export function altitude(meters: number): string {
  return measure(meters, 'm', 0)
}
