import { array, assert, double, integer, property, record } from 'fast-check'
import { expect, test } from 'vitest'
import { besideOf, CLUSTER_PX, groupNear } from '../../../src/web/pages/map/layers/clusters.ts'

const places = array(
  record({ x: double({ min: 0, max: 256, noNaN: true }), y: double({ min: 0, max: 256, noNaN: true }) }),
)
const scales = integer({ min: 0, max: 40 }).map((half) => 2 ** (half / 2))

test('each item is in exactly one group, and near the first of it', () => {
  assert(
    property(places, scales, (found, scale) => {
      const items = found.map((world) => ({ world }))
      const groups = groupNear(items, scale)
      expect(groups.flat().length).toBe(items.length)
      expect(new Set(groups.flat())).toEqual(new Set(items))
      for (const group of groups) {
        const reach = Math.min(
          ...group.map((seed) =>
            Math.max(...group.map(({ world }) => Math.hypot(world.x - seed.world.x, world.y - seed.world.y) * scale)),
          ),
        )
        expect(reach).toBeLessThanOrEqual(CLUSTER_PX * (1 + 1e-9))
      }
    }),
  )
})

test('items in one place are one group at any scale, and far ones are alone', () => {
  const at = (x: number, y: number) => ({ world: { x, y } })
  const [a, b, far] = [at(10, 10), at(10, 10), at(200, 200)]
  expect(groupNear([a, b, far], 1)).toEqual([[a, b], [far]])
  expect(groupNear([a, b, far], 2 ** 20)).toEqual([[a, b], [far]])
})

test('a dot that another one would cover is drawn beside it', () => {
  const pins = [{ world: { x: 10, y: 10 }, radius: 6 }]
  expect(besideOf({ x: 10, y: 10 }, 13, pins)).toEqual({ x: 29, y: 10 })
  expect(besideOf({ x: 10, y: 5 }, 13, pins)).toEqual({ x: 10, y: -9 })
  expect(besideOf({ x: 10, y: 29 }, 13, pins)).toEqual({ x: 10, y: 29 })
  expect(besideOf({ x: 10, y: 10 }, 13, [])).toEqual({ x: 10, y: 10 })
})
