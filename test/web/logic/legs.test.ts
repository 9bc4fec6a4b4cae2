import { expect, test } from 'vitest'
import { legsOf } from '../../../src/web/pages/map/layers/legs.ts'

test('each part has its length and its direction', () => {
  const legs = legsOf([
    { lat: 47, lng: 8 },
    { lat: 48, lng: 8 },
    { lat: 48, lng: 7 },
    { lat: 47, lng: 7 },
  ])
  expect(legs.map(({ meters }) => Math.round(meters / 100) / 10)).toEqual([111.2, 74.4, 111.2])
  // A line to the west begins a little to the north of it: that way is shorter.
  expect(legs.map(({ degrees }) => Math.round(degrees * 10) / 10)).toEqual([0, 270.4, 180])
  expect(legsOf([{ lat: 47, lng: 8 }])).toEqual([])
})
