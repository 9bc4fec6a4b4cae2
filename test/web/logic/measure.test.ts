import { afterEach, expect, test } from 'vitest'
import { clockHours, unitSystem } from '../../../src/web/display.ts'
import { clock, clockSeconds, dateTime } from '../../../src/web/format.ts'
import { altitude, distance, measure, shownUnit } from '../../../src/web/measure.ts'

afterEach(() => {
  unitSystem.value = 'metric'
  clockHours.value = '24'
})

test.each([
  [0, '0 m', '0 ft'],
  [100, '100 m', '328 ft'],
  [402, '402 m', '1319 ft'],
  [403, '403 m', '0.3 mi'],
  [999.4, '999 m', '0.6 mi'],
  [999.6, '1 km', '0.6 mi'],
  [23_000, '23 km', '14.3 mi'],
])('%d metres are %s, or %s', (meters, metric, imperial) => {
  expect(distance(meters)).toBe(metric)
  unitSystem.value = 'imperial'
  expect(distance(meters)).toBe(imperial)
})

// Values of NIST Special Publication 811, appendix B.8.
test.each([
  [-40, '°C', '−40 °C', '−40 °F'],
  [21.5, '°C', '21.5 °C', '70.7 °F'],
  [10, 'm/s', '10 m/s', '22.4 mph'],
  [1013.25, 'hPa', '1013.3 hPa', '29.9 inHg'],
  [25.4, 'mm', '25.4 mm', '1 in'],
  [50, 'kg', '50 kg', '110.2 lb'],
  [3.7, 'V', '3.7 V', '3.7 V'],
  [5, null, '5', '5'],
])('%d %s is %s, or %s', (value, unit, metric, imperial) => {
  expect(measure(value, unit, 1)).toBe(metric)
  unitSystem.value = 'imperial'
  expect(measure(value, unit, 1)).toBe(imperial)
})

test('what is typed in feet or °F becomes what the service stores; a difference has no zero', () => {
  unitSystem.value = 'imperial'
  expect(shownUnit('m').revert(1000)).toBeCloseTo(304.8, 10)
  expect([shownUnit('°C').revert(212), shownUnit('°C').convert(100)]).toEqual([100, 212])
  expect([shownUnit('°C', true).revert(9), shownUnit('°C', true).convert(5)]).toEqual([5, 9])
  expect([shownUnit('%').revert(7), shownUnit(null).revert(7)]).toEqual([7, 7])
})

test('an altitude stays in metres or feet, however high', () => {
  expect(altitude(2962)).toBe('2962 m')
  unitSystem.value = 'imperial'
  expect([altitude(2962), shownUnit('m').unit]).toEqual(['9718 ft', 'ft'])
})

test('times have 24 or 12 hours', () => {
  const at = new Date(2026, 10, 23, 17, 5, 9).getTime()
  const midnight = new Date(2026, 10, 23, 0, 30).getTime()
  const shown = () => [clock(at), clockSeconds(at), dateTime(at), clock(midnight)]
  expect(shown()).toEqual(['17:05', '17:05:09', '23 Nov 2026, 17:05:09', '00:30'])
  clockHours.value = '12'
  expect(shown()).toEqual(['05:05 pm', '05:05:09 pm', '23 Nov 2026, 05:05:09 pm', '12:30 am'])
})
