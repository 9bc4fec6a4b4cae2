import { expect, test } from 'vitest'
import { t } from '../../../src/web/strings.ts'

test('large numbers are grouped wherever they are counted', () => {
  const { neighbors, map, nodes, routes, messages, common } = t
  const counts = [
    neighbors.count,
    map.places,
    map.waypoints,
    (n: number) => nodes.matches(n, 20),
    routes.earlier,
    messages.missed,
    common.newer,
  ]
  expect(counts.map((count) => count(2025))).toEqual([
    '2,025 links',
    '2,025 places',
    '2,025 waypoints',
    '2,025 matches, the first 20 shown',
    '2,025 earlier traceroutes',
    '2,025 new messages',
    '2,025 newer',
  ])
  expect(counts.map((count) => count(1))).toEqual([
    'one link',
    'one place',
    'One waypoint',
    '1 match',
    '1 earlier traceroute',
    '1 new message',
    '1 newer',
  ])
})
