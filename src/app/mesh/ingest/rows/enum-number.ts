type EnumTable = { readonly values: readonly { readonly name: string; readonly number: number }[] }

/** The protocol's number for a name made by `enumName`, also for `UNKNOWN_131`; null for any other text. */
export function enumNumber(schema: EnumTable, name: string): number | null {
  const known = schema.values.find((value) => value.name === name)
  if (known !== undefined) return known.number
  const unknown = /^UNKNOWN_(\d{1,10})$/.exec(name)?.[1]
  return unknown === undefined ? null : Number(unknown)
}
