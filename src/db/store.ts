import type { BatchItem } from 'drizzle-orm/batch'
import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type * as schema from './schema.ts'

/** Synchronous better-sqlite3 and asynchronous D1 behind one type: always `await` a query. */
export type Db = BaseSQLiteDatabase<'sync' | 'async', unknown, typeof schema>

/** A query that has been built but not run. */
export type Statement = BatchItem<'sqlite'>

/** Where everything is kept. */
export interface Store {
  readonly db: Db
  /**
   * Runs the statements in order as one transaction: all of them or none. A later statement may refer to an earlier
   * insert by a sub-select on a unique column. Throws what the database throws.
   */
  atomic(all: readonly [Statement, ...Statement[]]): Promise<void>
}

/** Prepares queries once for each database: building one through the ORM costs ten times as much as running it. */
export function prepareOnce<T>(build: (db: Db) => T): (store: Store) => T {
  const prepared = new WeakMap<Db, T>()
  return ({ db }) => {
    const known = prepared.get(db)
    if (known !== undefined) return known
    const built = build(db)
    prepared.set(db, built)
    return built
  }
}
