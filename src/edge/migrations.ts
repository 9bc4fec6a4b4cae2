import { sql } from 'drizzle-orm'
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' }
import type { Db } from '../db/store.ts'

/** Their names begin with a number, counted from 0. */
const OURS = journal.entries.length

/** A restore has begun and is not complete. The message is one line for the log. */
export class HalfRestored extends Error {
  override name = 'HalfRestored'
  override message = 'DB: found a restore that is not complete, expected the result of all its files, in order'
}

/** The tag of the last migration of the database. */
export async function latestMigration(db: Db): Promise<string> {
  const [last] = await db.all<{ name: string }>(sql`select name from d1_migrations order by id desc limit 1`)
  return last?.name.replace(/\.sql$/, '') ?? ''
}

/**
 * The name of a migration unknown to this version, made by a newer one. Null: there is none, or `wrangler d1 migrations
 * apply` did not create the tables.
 */
export async function findNewerMigration(db: Db): Promise<string | null> {
  const kept = await db.all<{ name: string }>(
    sql`select name from sqlite_master where type = 'table' and name in ('d1_migrations', 'restore_under_way')`,
  )
  if (kept.some(({ name }) => name === 'restore_under_way')) throw new HalfRestored()
  if (kept.length === 0) return null
  const applied = await db.all<{ name: string }>(sql`select name from d1_migrations order by id desc`)
  return applied.find(({ name }) => Number.parseInt(name, 10) >= OURS)?.name ?? null
}
