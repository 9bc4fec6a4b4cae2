export type Key = number | string
export type Arranged<T> = {
  readonly rows: readonly T[]
  /** The number of rows that are not shown. */
  readonly newer: number
  /** Whether the shown rows would now be in another order. */
  readonly isMoved: boolean
}

/** `shown` in its order, with the values of `fresh`, and the rows after them; a deleted row stays unchanged. */
export function arrange<T>(shown: readonly T[], fresh: readonly T[], keyOf: (row: T) => Key): Arranged<T> {
  const byKey = new Map(fresh.map((row) => [keyOf(row), row]))
  const known = new Set(shown.map(keyOf))
  const rows = shown.map((row) => byKey.get(keyOf(row)) ?? row)
  const left = fresh.filter((row) => known.has(keyOf(row)))
  const isMoved = left.length < rows.length || left.some((row, index) => row !== rows[index])
  // New rows after all shown rows move nothing.
  const added = fresh.slice(fresh.findLastIndex((row) => known.has(keyOf(row))) + 1)
  if (left.length === 0) return { rows, newer: fresh.length, isMoved }
  return { rows: [...rows, ...added], newer: fresh.length - left.length - added.length, isMoved }
}

/** The rows that can be in sight at once. */
const IN_SIGHT = 100

/** Whether the first rows are the same, in the same order. */
export function isSameOrder<T>(a: readonly T[], b: readonly T[], keyOf: (row: T) => Key): boolean {
  const keys = b.slice(0, IN_SIGHT).map(keyOf)
  return (
    Math.min(a.length, IN_SIGHT) === keys.length && a.slice(0, IN_SIGHT).every((row, at) => keyOf(row) === keys[at])
  )
}
