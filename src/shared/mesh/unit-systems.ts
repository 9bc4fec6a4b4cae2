/** How people read measurements. The service stores and delivers metric values. */
export const UNIT_SYSTEMS = ['metric', 'imperial'] as const
export type UnitSystem = (typeof UNIT_SYSTEMS)[number]

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

/** The unit in which somebody reads values, or differences of values, of a unit of the service, and the conversion. */
export function shownIn(system: UnitSystem, unit: string | null, isDifference = false): Shown {
  const other = system === 'imperial' && unit !== null ? IMPERIAL[unit] : undefined
  if (other === undefined) return { unit, convert: (value) => value, revert: (shown) => shown }
  const { factor } = other
  const zero = isDifference ? 0 : (other.zero ?? 0)
  return { unit: other.unit, convert: (value) => value * factor + zero, revert: (shown) => (shown - zero) / factor }
}
