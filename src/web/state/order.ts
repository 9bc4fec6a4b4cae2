export type Key = number | string
export type Arranged<T> = {
  readonly rows: readonly T[]
  /** The number of rows that are not shown. */
  readonly newer: number
  /** Whether the shown rows are in another order now. */
  readonly isMoved: boolean
}

/** `shown` in its order with the values of `fresh`, and what follows them; a row that is gone stays as it was. */
export function arrange<T>(shown: readonly T[], fresh: readonly T[], keyOf: (row: T) => Key): Arranged<T> {
  const byKey = new Map(fresh.map((row) => [keyOf(row), row]))
  const known = new Set(shown.map(keyOf))
  const rows = shown.map((row) => byKey.get(keyOf(row)) ?? row)
  const left = fresh.filter((row) => known.has(keyOf(row)))
  const isMoved = left.length < rows.length || left.some((row, index) => row !== rows[index])
  // What comes after all that is shown moves nothing.
  const added = fresh.slice(fresh.findLastIndex((row) => known.has(keyOf(row))) + 1)
  if (left.length === 0) return { rows, newer: fresh.length, isMoved }
  return { rows: [...rows, ...added], newer: fresh.length - left.length - added.length, isMoved }
}
