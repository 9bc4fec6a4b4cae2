import { drizzle } from 'drizzle-orm/d1'
import * as schema from '../db/schema.ts'
import type { Db, Store } from '../db/store.ts'

/** The store on Cloudflare D1. Its schema is brought up to date by `wrangler d1 migrations apply`, never from here. */
export function d1Store(database: D1Database): Store {
  const db = drizzle(database, { schema })
  return {
    db: asDb(db),
    // D1 runs a batch as one transaction; it refuses BEGIN, and decides itself when a commit is on its disks.
    atomic: async (all) => {
      await db.batch(all)
    },
    // D1 refuses the pragmas that count pages, and tells the size with each answer.
    sizeBytes: async () => (await database.prepare('select 1').run()).meta.size_after,
    version: () => null,
  }
}

// A DrizzleD1Database is a BaseSQLiteDatabase<'async', …>; the class is invariant in its mode, its use is not.
function asDb(db: unknown): Db {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return db as Db
}
