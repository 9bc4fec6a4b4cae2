import type { DescEnum } from '@bufbuild/protobuf'

const BITS = Array.from({ length: 64 }, (_, bit) => BigInt(bit))
const UNKNOWN = /^UNKNOWN_(\d{1,2})$/

/** The flags in a table of bits, in its order: all except its zero. */
export function listFlags(table: DescEnum): string[] {
  return table.values.flatMap(({ name, number }) => (number === 0 ? [] : [name]))
}

/** Names of the bits that are set: known ones in the order of the table, then e.g. `UNKNOWN_10` for bit 10 (1024). */
export function readFlags(table: DescEnum, bits: number | bigint): string[] {
  const set = BigInt(bits)
  const known = table.values.filter(({ number }) => (set & BigInt(number)) !== 0n)
  const rest = known.reduce((left, { number }) => left & ~BigInt(number), set)
  const unknown = BITS.filter((bit) => ((rest >> bit) & 1n) === 1n)
  return [...known.map(({ name }) => name), ...unknown.map((bit) => `UNKNOWN_${bit}`)]
}

/**
 * The bits of these names, together with the bits of `present` that have no name here: a client cannot mean to clear
 * bits that it does not know. Null for a name that is neither in the table nor such a bit.
 */
export function writeFlags(table: DescEnum, names: readonly string[], present: readonly string[]): bigint | null {
  const kept = present.filter((name) => UNKNOWN.test(name))
  const values = new Map(table.values.map(({ name, number }) => [name, BigInt(number)]))
  for (const name of kept) values.set(name, 1n << BigInt(UNKNOWN.exec(name)?.[1] ?? 0))
  let bits = 0n
  for (const name of [...names, ...kept]) {
    const value = values.get(name)
    if (value === undefined || value === 0n) return null
    bits |= value
  }
  return bits
}
