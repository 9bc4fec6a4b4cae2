/** The names of a table, in its order. */
export function namesOf<Name extends string>(table: Readonly<Record<Name, unknown>>): readonly [Name, ...Name[]] {
  // The tables are literals that nothing widens, and none is empty: their own keys are all of their type's.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.keys(table) as [Name, ...Name[]]
}
