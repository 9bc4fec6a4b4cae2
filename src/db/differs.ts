import { or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'

/**
 * Whether a row differs from one of these values. In an update's condition it turns a change into none if another
 * request has just made the same one.
 */
export function differs<K extends string>(
  columns: Readonly<Record<K, SQLiteColumn>>,
  fields: readonly K[],
  values: Readonly<Record<K, unknown>>,
): SQL | undefined {
  return or(...fields.map((key) => sql`${columns[key]} is not ${sql.param(values[key], columns[key])}`))
}
