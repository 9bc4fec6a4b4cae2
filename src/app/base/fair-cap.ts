/**
 * The number of rows that each owner may keep so that all together keep at most `total`. Owners with fewer rows keep
 * all of them; the others keep the same number each. `owners`: how many owners have a given number of rows. The result
 * is rounded down.
 */
export function capTo(owners: ReadonlyMap<number, number>, total: number): number {
  let left = Math.max(0, total)
  let remaining = [...owners.values()].reduce((sum, howMany) => sum + howMany, 0)
  for (const [count, howMany] of [...owners].toSorted(([a], [b]) => a - b)) {
    const cap = Math.floor(left / remaining)
    if (count > cap) return cap
    left -= count * howMany
    remaining -= howMany
  }
  return Number.MAX_SAFE_INTEGER
}

/** How many owners have this many rows, for `capTo`. */
export function tally(counts: Iterable<number>): Map<number, number> {
  const tallied = new Map<number, number>()
  for (const count of counts) tallied.set(count, (tallied.get(count) ?? 0) + 1)
  return tallied
}
