import { Column, fillPlaceholders, is, noopDecoder, SQL } from 'drizzle-orm'

type Values = Record<string, unknown>
type Row = readonly unknown[]

/**
 * Drizzle finds out for each value of each row how to decode it, which takes several times as long as reading the row.
 * Each query that this database prepares from now on finds it out once, if all of its fields are columns or expressions
 * directly in the row.
 */
export function readRowsQuickly(db: object): void {
  const session = Object(Reflect.get(db, 'session'))
  const prepareQuery: unknown = session.prepareQuery
  if (typeof prepareQuery !== 'function') throw new TypeError('a database of Drizzle has a session')
  session.prepareQuery = (...query: unknown[]): unknown => {
    const prepared = Reflect.apply(prepareQuery, session, query)
    const [, fields, , , customMapper] = query
    const toObject = customMapper === undefined && Array.isArray(fields) ? createReader(fields) : null
    if (toObject === null) return prepared
    const { stmt, query: built } = prepared
    const get = (values: Values = {}) => {
      const row = stmt.raw().get(...fillPlaceholders(built.params, values))
      return row === undefined ? undefined : toObject(row)
    }
    return Object.create(prepared, {
      all: { value: (values?: Values) => prepared.values(values).map((row: Row) => toObject(row)) },
      get: { value: get },
    })
  }
}

/** Null if Drizzle has to put the row together itself. */
function createReader(fields: readonly { readonly path: readonly string[]; readonly field: unknown }[]) {
  const decoders = fields.map(({ field }) => decoderOf(field))
  if (fields.some(({ path }) => path.length !== 1) || decoders.includes(undefined)) return null
  const names = fields.map(({ path: [name = ''] }) => name)
  // A copy has all fields at once, which takes less time than adding them.
  const empty: Values = Object.fromEntries(names.map((name) => [name, null]))
  return (row: Row): Values => {
    const object = { ...empty }
    for (let n = 0; n < names.length; n++) {
      const decoder = decoders[n]
      const value = row[n]
      object[names[n] ?? ''] = value === null || decoder == null ? value : decoder.mapFromDriverValue(value)
    }
    return object
  }
}

type Decoder = { mapFromDriverValue(value: unknown): unknown }

/** Null if the driver's value is the field's; undefined for other kinds of fields. */
function decoderOf(field: unknown): Decoder | null | undefined {
  if (is(field, Column)) return field.mapFromDriverValue === Column.prototype.mapFromDriverValue ? null : field
  const expression = is(field, SQL.Aliased) ? field.sql : field
  if (!is(expression, SQL)) return undefined
  const decoder: Decoder = Reflect.get(expression, 'decoder')
  return decoder.mapFromDriverValue === noopDecoder.mapFromDriverValue ? null : decoder
}
