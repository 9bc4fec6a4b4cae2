import { unitSystem } from './display.ts'
import { decimal } from './format.ts'

/** For each unit of the service, the imperial unit: a value times `factor`, plus `zero`. */
const IMPERIAL: Readonly<Record<string, { readonly unit: string; readonly factor: number; readonly zero?: number }>> = {
  '°C': { unit: '°F', factor: 1.8, zero: 32 },
  m: { unit: 'ft', factor: 1 / 0.3048 },
  km: { unit: 'mi', factor: 1 / 1.609_344 },
  mm: { unit: 'in', factor: 1 / 25.4 },
  'm/s': { unit: 'mph', factor: 1 / 0.447_04 },
  hPa: { unit: 'inHg', factor: 1 / 33.863_886_667 },
  kg: { unit: 'lb', factor: 1 / 0.453_592_37 },
}

type Shown = {
  readonly unit: string | null
  convert(value: number): number
  /** Back to the unit of the service. */
  revert(shown: number): number
}

/** The unit in which this user reads values, or differences of values, of a unit of the service, and the conversion. */
export function shownUnit(unit: string | null, isDifference = false): Shown {
  const other = unitSystem.value === 'imperial' && unit !== null ? IMPERIAL[unit] : undefined
  if (other === undefined) return { unit, convert: (value) => value, revert: (shown) => shown }
  const { factor } = other
  const zero = isDifference ? 0 : (other.zero ?? 0)
  return { unit: other.unit, convert: (value) => value * factor + zero, revert: (shown) => (shown - zero) / factor }
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
