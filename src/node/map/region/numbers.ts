export type Numbers = { push(value: number): void; at(index: number): number; count(): number }

/** A list of many numbers, in eight bytes each. */
export function createNumbers(): Numbers {
  let values = new Float64Array(1024)
  let length = 0
  return {
    push(value) {
      if (length === values.length) {
        const larger = new Float64Array(length * 2)
        larger.set(values)
        values = larger
      }
      values[length++] = value
    },
    at(index) {
      const value = index < length ? values[index] : undefined
      if (value === undefined) throw new RangeError('no such number')
      return value
    },
    count: () => length,
  }
}
