import { sql } from 'drizzle-orm'
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' }
import type { Db } from '../db/store.ts'

/** Their names begin with a number, counted from 0. */
const OURS = journal.entries.length

/**
 * The name of a migration unknown to this version, made by a newer one. Null: there is none, or `wrangler d1 migrations
 * apply` did not create the tables.
 */
export async function findNewerMigration(db: Db): Promise<string | null> {
  const isKept = await db.all(sql`select 1 from sqlite_master where type = 'table' and name = 'd1_migrations'`)
  if (isKept.length === 0) return null
  const applied = await db.all<{ name: string }>(sql`select name from d1_migrations order by id desc`)
  return applied.find(({ name }) => Number.parseInt(name, 10) >= OURS)?.name ?? null
}
