import { sql } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import * as z from 'zod'
import { BACKUP_KINDS, type BackupProgress } from '../../app/system/backup/backup.ts'
import { built, type Db, type Statement, type Store } from '../../db/store.ts'
import { MINUTE_MS } from '../../shared/time.ts'

/** How long an invocation of the worker may be silent before another one goes on. It writes far more often. */
const LEASE_MS = 5 * MINUTE_MS

// The table exists only while a backup is made, so it is in no schema.
const work = sqliteTable('backup_work', {
  id: integer('id').primaryKey(),
  state: text('state').notNull(),
  revision: integer('revision').notNull(),
  lease: integer('lease').notNull(),
})

const hashSchema = z.object({ words: z.array(z.int()), bytes: z.int(), rest: z.array(z.int()) })

/** A member of gzip in an object of the bucket. */
const pieceSchema = z.object({ object: z.int(), at: z.int(), bytes: z.int() })

const tableSchema = z.object({
  name: z.string(),
  rows: z.int(),
  bytes: z.int(),
  sha256: z.string(),
  pieces: z.array(pieceSchema),
})

const objectSchema = z.object({ key: z.string(), bytes: z.int() })

/** Where the bytes of a backup's tables are in the bucket. */
export const contentsSchema = z.object({ tables: z.array(tableSchema), objects: z.array(objectSchema) })

export type Contents = z.infer<typeof contentsSchema>
export type Piece = z.infer<typeof pieceSchema>

const actorSchema = z.object({
  id: z.int().nullable(),
  username: z.string().nullable(),
  ip: z.string().nullable(),
  requestId: z.string().nullable(),
})

const stateSchema = contentsSchema.extend({
  name: z.string(),
  createdAt: z.int(),
  kind: z.enum(BACKUP_KINDS),
  schema: z.string(),
  appVersion: z.string(),
  by: actorSchema,
  /** How often in a row an invocation failed, or ended without a word. */
  failures: z.int(),
  /** The table that is being read, after this row. */
  open: z
    .object({
      cursor: z.array(z.string()),
      rows: z.int(),
      hash: hashSchema,
      pieces: z.array(pieceSchema),
    })
    .nullable(),
})

/** A backup that is being made. */
export type State = z.infer<typeof stateSchema>

/** For a state that cannot be read: so old that it is given up. */
const LOST: State = {
  name: 'unknown',
  createdAt: 0,
  kind: 'manual',
  schema: '',
  appVersion: '',
  by: { id: null, username: null, ip: null, requestId: null },
  failures: 0,
  open: null,
  tables: [],
  objects: [],
}

function stateOf(text: string): State {
  try {
    return stateSchema.parse(JSON.parse(text))
  } catch {
    return LOST
  }
}

/** A state that this invocation alone may change, until its lease ends. */
export type Claim = { state: State; revision: number }

/** The statements that note a new backup, whose first revision is `now`. They fail if there is one. */
export function startWork(db: Db, state: State, now: number): Statement[] {
  return [
    built(
      db,
      sql`create table backup_work (id integer primary key check (id = 1), state text not null, revision integer not null, lease integer not null)`,
    ),
    db.insert(work).values({ id: 1, state: JSON.stringify(state), revision: now, lease: now + LEASE_MS }),
  ]
}

export const endWork = (db: Db): Statement => built(db, sql`drop table backup_work`)

/** Takes over the backup that is being made; null: there is none, or another invocation works on it. */
export async function claimWork({ db }: Store, now: number): Promise<Claim | null> {
  const [row] = await ifBegun(db, () =>
    db.all<{ state: string; revision: number }>(
      sql`update backup_work set revision = revision + 1, lease = ${now + LEASE_MS},
          state = iif(json_valid(state), json_set(state, '$.failures', json_extract(state, '$.failures') + 1), state)
        where lease < ${now} returning state, revision`,
    ),
  )
  return row === undefined ? null : { state: stateOf(row.state), revision: row.revision }
}

/**
 * Writes the state, together with other statements. Throws, and changes nothing, if another invocation has taken over.
 * `isLast`: anybody may go on at once.
 */
export async function saveWork(
  { store, now }: { readonly store: Store; now(): number },
  claim: Claim,
  { isLast = false, more = [] }: { readonly isLast?: boolean; readonly more?: readonly Statement[] } = {},
): Promise<void> {
  await store.atomic([ownWork(store.db, claim, isLast ? 0 : now() + LEASE_MS), ...more])
  claim.revision++
}

/** Lets others go on at once. */
export async function releaseWork({ db }: Store, { revision }: Claim): Promise<void> {
  await db.run(sql`update backup_work set lease = 0 where revision = ${revision}`)
}

/** The statement that fails, and all with it, if another invocation has taken over. */
export function ownWork(db: Db, { state, revision }: Claim, lease = 0): Statement {
  const own = sql`case ${work.revision} when ${revision} then ${revision} + 1 end`
  return db.update(work).set({ state: JSON.stringify(state), lease, revision: own })
}

/** The backup that is being made; null: none is. */
export async function readWork({ db }: Store): Promise<State | null> {
  const [row] = await ifBegun(db, () => db.all<{ state: string }>(sql`select state from backup_work`))
  return row === undefined ? null : stateOf(row.state)
}

export function progressOf({ name, tables, open }: State): BackupProgress {
  return { name, tables: tables.length, rows: tables.reduce((sum, { rows }) => sum + rows, open?.rows ?? 0) }
}

async function ifBegun<T>(db: Db, read: () => T[] | Promise<T[]>): Promise<T[]> {
  const begun = await db.all(sql`select 1 from sqlite_master where name = 'backup_work'`)
  if (begun.length === 0) return []
  try {
    return await read()
  } catch (error) {
    // It has just ended.
    if (isMissing(error)) return []
    throw error
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && (/no such table: backup_work/.test(error.message) || isMissing(error.cause))
