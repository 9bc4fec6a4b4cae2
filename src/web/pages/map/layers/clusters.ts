import type { Place } from '../../../parts/map/sheet.ts'

/** Dots closer together than this many pixels are joined. */
export const CLUSTER_PX = 36

/**
 * Joins items within CLUSTER_PX of each other at this scale (pixels per pixel at zoom 0; less if dots are drawn
 * larger). The result depends only on the order of `items`, so use a stable one. An item without a neighbour is a group
 * of its own.
 */
export function groupNear<T extends { readonly world: Place }>(items: readonly T[], scale: number): T[][] {
  const size = CLUSTER_PX / scale
  const cells = new Map<string, T[]>()
  const cellOf = (column: number, row: number) => `${column} ${row}`
  for (const item of items) {
    const key = cellOf(Math.floor(item.world.x / size), Math.floor(item.world.y / size))
    const there = cells.get(key)
    if (there === undefined) cells.set(key, [item])
    else there.push(item)
  }
  const taken = new Set<T>()
  return items.flatMap((item) => {
    if (taken.has(item)) return []
    const column = Math.floor(item.world.x / size)
    const row = Math.floor(item.world.y / size)
    const near = [-1, 0, 1].flatMap((right) =>
      [-1, 0, 1].flatMap((down) => cells.get(cellOf(column + right, row + down)) ?? []),
    )
    const group = near.filter((other) => !taken.has(other) && distance(item.world, other.world) <= size)
    for (const member of group) taken.add(member)
    return [group]
  })
}

/**
 * Where a dot is drawn so that the dots of these nodes do not cover it: at its own place, or moved just far enough from
 * each of them in turn. All lengths are in the units of the places.
 */
export function besideOf(at: Place, radius: number, others: readonly { world: Place; radius: number }[]): Place {
  return others.reduce((place, { world, radius: own }) => {
    const apart = distance(place, world)
    const wanted = radius + own
    if (apart >= wanted) return place
    // Without a direction of its own it goes to the right.
    const [x, y] = apart === 0 ? [1, 0] : [(place.x - world.x) / apart, (place.y - world.y) / apart]
    return { x: world.x + x * wanted, y: world.y + y * wanted }
  }, at)
}

function distance(a: Place, b: Place): number {
  return Math.hypot(a.x - b.x, a.y - b.y)
}
