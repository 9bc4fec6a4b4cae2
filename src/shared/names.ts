/** The names of a table, in its order. */
export function namesOf<Name extends string>(table: Readonly<Record<Name, unknown>>): readonly [Name, ...Name[]] {
  // The tables are literals, never widened and never empty, so their keys are those of their type.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.keys(table) as [Name, ...Name[]]
}

/** Whether the table has this name. */
export function isNameOf<Name extends string>(table: Readonly<Record<Name, unknown>>, name: string): name is Name {
  return Object.hasOwn(table, name)
}

/** A value for each name of a table, in its order. */
export function forEachName<Name extends string, T>(
  table: Readonly<Record<Name, unknown>>,
  make: (name: Name) => T,
): Record<Name, T> {
  // Every name gets a value.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(namesOf(table).map((name) => [name, make(name)])) as Record<Name, T>
}
