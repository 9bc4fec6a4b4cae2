/**
 * How many each may keep so that together they keep at most `total`: who has fewer keeps all, the others keep the same.
 * `owners`: how many owners have so many. A whole number, so that some more may fit.
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

/** How many have so many, for `capTo`. */
export function tally(counts: Iterable<number>): Map<number, number> {
  const tallied = new Map<number, number>()
  for (const count of counts) tallied.set(count, (tallied.get(count) ?? 0) + 1)
  return tallied
}
