import { drizzle } from 'drizzle-orm/d1'
import { ownsFor } from '../app/base/owned.ts'
import { type Db, isAuditEntry, refuseMiscount, type Statement, type Store } from '../db/store.ts'
import type { Client } from './reading/replicas.ts'

/** A database of the Paid plan: developers.cloudflare.com/d1/platform/limits. */
const LIMIT_BYTES = 10_000_000_000

/**
 * The store on Cloudflare D1. Its schema is brought up to date by `wrangler d1 migrations apply`, never from here.
 * `onEntry` is called after each step that wrote to the audit log.
 */
export function d1Store(database: Client, onEntry: () => void = () => {}): Store {
  let size: number | null = null
  const db = drizzle(noting(database, (bytes) => (size = bytes)))
  const sizeBytes = async () => size ?? (await database.prepare('select 1').run()).meta.size_after
  const run = async (all: readonly [Statement, ...Statement[]]) => {
    const answers = await db.batch(all)
    if (all.some(isAuditEntry)) onEntry()
    return answers
  }
  return {
    db: asDb(db),
    packs: true,
    // D1 runs a batch as one transaction. It refuses BEGIN, and decides by itself when a commit reaches its disks.
    atomic: async (all) => {
      refuseMiscount(all)
      await run(all)
    },
    lazily: (change) => change(),
    // D1 refuses the pragmas that count pages, but each answer to a batch contains the size.
    batch: run,
    sizeBytes,
    space: async () => ({ usedBytes: await sizeBytes(), limitBytes: LIMIT_BYTES }),
    version: () => null,
  }
}

/** The store of the same database through another client: what this isolate remembers of the database is the same. */
export function likeStore(store: Store, database: Client, onEntry: () => void): Store {
  const like = d1Store(database, onEntry)
  ownsFor(store, like)
  ownsFor(store.db, like.db)
  return like
}

/** The same database, with its size reported at each batch. */
function noting(database: Client, onSize: (bytes: number) => void): D1Database {
  return asDatabase({
    prepare: (sql: string) => database.prepare(sql),
    batch: async <T>(statements: D1PreparedStatement[]) => {
      const answers = await database.batch<T>(statements)
      const [answer] = answers
      if (answer !== undefined) onSize(answer.meta.size_after)
      return answers
    },
  })
}

// drizzle calls nothing else of a database (drizzle-orm/d1/session).
function asDatabase(client: Client): D1Database {
  const any: unknown = client
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return any as D1Database
}

// A DrizzleD1Database is a BaseSQLiteDatabase<'async', …>; the class is invariant in its mode, its use is not.
function asDb(db: unknown): Db {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return db as Db
}
