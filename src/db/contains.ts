import { type Placeholder, sql, type SQL } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'

/**
 * Whether the text of a column has `part` in it, without regard to the case of ASCII letters. Not LIKE: D1 refuses
 * patterns of more than 50 bytes (developers.cloudflare.com/d1/platform/limits).
 */
export function contains(column: AnySQLiteColumn, part: string | Placeholder | SQL): SQL {
  return sql`instr(lower(${column}), lower(${part})) > 0`
}
