import { unitSystem } from './display.ts'
import { decimal } from './format.ts'

/** Units of the service, and those that users of imperial units see instead. */
const IMPERIAL: Readonly<Record<string, { readonly unit: string; convert(value: number): number }>> = {
  '°C': { unit: '°F', convert: (value) => value * 1.8 + 32 },
  m: { unit: 'ft', convert: (value) => value / 0.3048 },
  km: { unit: 'mi', convert: (value) => value / 1.609_344 },
  mm: { unit: 'in', convert: (value) => value / 25.4 },
  'm/s': { unit: 'mph', convert: (value) => value / 0.447_04 },
  hPa: { unit: 'inHg', convert: (value) => value / 33.863_886_667 },
  kg: { unit: 'lb', convert: (value) => value / 0.453_592_37 },
}

type Shown = { readonly unit: string | null; convert(value: number): number }

/** The unit in which this user reads values of a unit of the service, and the conversion to it. */
export function shownUnit(unit: string | null): Shown {
  const other = unitSystem.value === 'imperial' && unit !== null ? IMPERIAL[unit] : undefined
  return other ?? { unit, convert: (value) => value }
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
