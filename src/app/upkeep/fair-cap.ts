/**
 * How many each may keep so that together they keep at most `total`: who has fewer keeps all, the others keep the same.
 * A whole number; some more may fit.
 */
export function capTo(counts: readonly number[], total: number): number {
  let left = total
  const ascending = counts.toSorted((a, b) => a - b)
  for (const [index, count] of ascending.entries()) {
    const cap = Math.floor(left / (ascending.length - index))
    if (count > cap) return Math.max(0, cap)
    left -= count
  }
  return Number.MAX_SAFE_INTEGER
}
