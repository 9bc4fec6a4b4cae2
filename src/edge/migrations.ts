import { sql } from 'drizzle-orm'
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' }
import type { Db } from '../db/store.ts'

const OURS: ReadonlySet<string> = new Set(journal.entries.map(({ tag }) => `${tag}.sql`))

/**
 * Name of a migration that this version does not have: a newer one made it. Null: there is none, or `wrangler d1
 * migrations apply` did not make the tables.
 */
export async function findNewerMigration(db: Db): Promise<string | null> {
  const isKept = await db.all(sql`select 1 from sqlite_master where type = 'table' and name = 'd1_migrations'`)
  if (isKept.length === 0) return null
  const applied = await db.all<{ name: string }>(sql`select name from d1_migrations order by id desc`)
  return applied.find(({ name }) => !OURS.has(name))?.name ?? null
}
