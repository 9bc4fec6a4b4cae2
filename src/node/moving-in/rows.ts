import { namesOf } from '../../shared/names.ts'

const FIRST_ROWS = 64

/**
 * Rows of numbers in one block of memory, which is used again after `clear`. As objects they would live long enough for
 * Node to give them hundreds of megabytes before it removes them. SQLite reads NaN as null.
 */
export type Rows<T> = {
  readonly length: number
  /** Returns the number of the row. */
  push(row: T): number
  get(index: number): T
  set(index: number, row: T): void
  /** The numbers of all rows, in the order of these columns. */
  order(...columns: readonly (keyof T)[]): Uint32Array
  clear(): void
}

/** `blank` has a value for each column. */
export function createRows<K extends string>(blank: Readonly<Record<K, number>>): Rows<Readonly<Record<K, number>>> {
  const names = namesOf(blank)
  const width = names.length
  let values = new Float64Array(width * FIRST_ROWS)
  let length = 0
  const set = (index: number, row: Readonly<Record<K, number>>) => {
    let at = index * width
    for (const name of names) values[at++] = row[name]
  }
  return {
    get length() {
      return length
    },
    push(row) {
      if ((length + 1) * width > values.length) {
        const larger = new Float64Array(values.length * 2)
        larger.set(values)
        values = larger
      }
      set(length, row)
      return length++
    },
    get(index) {
      const row: Record<K, number> = { ...blank }
      let at = index * width
      for (const name of names) row[name] = values[at++] ?? Number.NaN
      return row
    },
    set,
    order(...columns) {
      const at = columns.map((name) => names.indexOf(name))
      return Uint32Array.from({ length }, (_, index) => index).toSorted((a, b) => {
        for (const i of at) {
          const difference = (values[a * width + i] ?? 0) - (values[b * width + i] ?? 0)
          if (difference !== 0) return difference
        }
        return 0
      })
    },
    clear() {
      length = 0
    },
  }
}
