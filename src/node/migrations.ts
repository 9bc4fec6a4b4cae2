import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import * as z from 'zod'

const journalSchema = z.looseObject({ entries: z.array(z.looseObject({ tag: z.string(), when: z.int() })) })

function readJournal(folder: string) {
  return journalSchema.parse(JSON.parse(readFileSync(join(folder, 'meta', '_journal.json'), 'utf8')))
}

/** Tags of the migrations in a folder, oldest first. */
export function migrationTags(folder: string): string[] {
  return readJournal(folder).entries.map(({ tag }) => tag)
}

/** Tag of the newest migration in a folder. */
export function latestTag(folder: string): string {
  const tag = migrationTags(folder).at(-1)
  if (tag === undefined) throw new Error(`${folder} holds no migrations`)
  return tag
}

/** When the newest migration in a folder was made, in milliseconds: the time that a database records. Reads one file. */
export function latestTime(folder: string): number {
  return Math.max(...readJournal(folder).entries.map(({ when }) => when))
}

/** Fills a folder with the migrations up to and including `tag`, as they were at that version. */
export function copyMigrations(folder: string, tag: string, to: string): void {
  const journal = readJournal(folder)
  const end = journal.entries.findIndex((entry) => entry.tag === tag) + 1
  mkdirSync(join(to, 'meta'), { recursive: true, mode: 0o700 })
  const entries = journal.entries.slice(0, end)
  for (const entry of entries) copyFileSync(join(folder, `${entry.tag}.sql`), join(to, `${entry.tag}.sql`))
  writeFileSync(join(to, 'meta', '_journal.json'), JSON.stringify({ ...journal, entries }), { mode: 0o600 })
}

/** The empty database requested last, because usually the same one is requested again. */
let empty: { readonly of: string; readonly image: Buffer } | undefined

/** An empty database in memory, as the service had it when `tag` was its newest migration. */
export function openEmpty(folder: string, tag: string): Database.Database {
  const of = join(folder, tag)
  if (empty?.of !== of) empty = { of, image: emptyImage(folder, tag) }
  return new Database(empty.image)
}

function emptyImage(folder: string, tag: string): Buffer {
  const end = migrationTags(folder).indexOf(tag) + 1
  const database = new Database(':memory:')
  try {
    for (const { sql } of readMigrationFiles({ migrationsFolder: folder }).slice(0, end)) database.exec(sql.join('\n'))
    return database.serialize()
  } finally {
    database.close()
  }
}
