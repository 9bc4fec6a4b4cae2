import { expect, test } from 'vitest'
import { distanceMetres } from '../../../src/shared/mesh/distance.ts'
import { radioHorizon } from '../../../src/shared/mesh/radio-horizon.ts'
import { circleAround, legsOf, wayOf } from '../../../src/web/pages/map/layers/legs.ts'

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

test('a way runs over the edge of the world, not around it, and lies where the user looks', () => {
  const places = [
    { lat: 0, lng: 179 },
    { lat: 0, lng: -179 },
  ]
  expect(legsOf(places).map(({ meters, degrees }) => [Math.round(meters / 1000), degrees])).toEqual([[222, 90]])
  const here = wayOf(places, -179)
  expect(here.stops.map(({ lng }) => lng)).toEqual([-181, -179])
  expect(here.line.map(({ lng }) => Math.round(lng * 100) / 100)).toEqual([-181, -180.33, -179.67, -179])
  expect(wayOf(places, 179).stops.map(({ lng }) => lng)).toEqual([179, 181])
  // Frankfurt to Seattle passes over Greenland: the shortest way is far north of both.
  const { line } = wayOf(
    [
      { lat: 50, lng: 8.6 },
      { lat: 47.6, lng: -122.3 },
    ],
    0,
  )
  expect(Math.max(...line.map(({ lat }) => lat))).toBeGreaterThan(70)
  expect(wayOf([], 0)).toEqual({ line: [], stops: [] })
})

test('the horizon of an antenna is that of an earth of 4/3 of its radius', () => {
  // ITU-R handbooks give 4.12 km times the root of the height in metres.
  expect([1, 10, 100, 1000].map((height) => Math.round(radioHorizon(height) / 10) / 100)).toEqual([
    4.12, 13.03, 41.22, 130.35,
  ])
  const edge = circleAround({ lat: 47, lng: 179.9 }, 13_000)
  const away = edge.map(({ lat, lng }) => {
    return distanceMetres({ latitude: 47, longitude: 179.9 }, { latitude: lat, longitude: lng })
  })
  expect(Math.max(...away) - Math.min(...away)).toBeLessThan(1)
  expect(Math.max(...edge.map(({ lng }) => lng))).toBeGreaterThan(180)
})
