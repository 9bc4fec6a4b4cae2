import { drizzle } from 'drizzle-orm/d1'
import { type Db, isAuditEntry, refuseMiscount, type Statement, type Store } from '../db/store.ts'

/** A database of the Paid plan: developers.cloudflare.com/d1/platform/limits. */
const LIMIT_BYTES = 10_000_000_000

/**
 * The store on Cloudflare D1. Its schema is brought up to date by `wrangler d1 migrations apply`, never from here.
 * `onEntry` is called after each step that wrote to the audit log.
 */
export function d1Store(database: D1Database, onEntry: () => void = () => {}): Store {
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

/** The same database, with its size reported at each batch. */
function noting(database: D1Database, onSize: (bytes: number) => void): D1Database {
  return new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'batch') return value.bind(target)
      return async (statements: D1PreparedStatement[]) => {
        const answers = await target.batch(statements)
        const [answer] = answers
        if (answer !== undefined) onSize(answer.meta.size_after)
        return answers
      }
    },
  })
}

// A DrizzleD1Database is a BaseSQLiteDatabase<'async', …>; the class is invariant in its mode, its use is not.
function asDb(db: unknown): Db {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return db as Db
}
