import { or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'

/**
 * Whether a row has another value than one of these. In an update's condition it makes a change that somebody else has
 * just made no change.
 */
export function differs<K extends string>(
  columns: Readonly<Record<K, SQLiteColumn>>,
  fields: readonly K[],
  values: Readonly<Record<K, unknown>>,
): SQL | undefined {
  return or(...fields.map((key) => sql`${columns[key]} is not ${sql.param(values[key], columns[key])}`))
}
