import { or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'

/**
 * Whether a row differs from one of these values. As the condition of an update, it makes the update a no-op if another
 * request has just made the same change.
 */
export function differs<K extends string>(
  columns: Readonly<Record<K, SQLiteColumn>>,
  fields: readonly K[],
  values: Readonly<Record<K, unknown>>,
): SQL | undefined {
  return or(...fields.map((key) => sql`${columns[key]} is not ${sql.param(values[key], columns[key])}`))
}
