import { eq, sql } from 'drizzle-orm'
import { revisions } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'

/** A serialised list and its entity tag. */
export type Body = { readonly json: string; readonly etag: string }

// Clients poll the same few lists: as many bodies are kept for one state of a table.
const KEPT_BODIES = 4

const queries = prepareOnce((db) => ({
  revision: db
    .select({ value: revisions.value })
    .from(revisions)
    .where(eq(revisions.name, sql.placeholder('name')))
    .prepare(),
}))

/** Changes with every change of the table. */
export async function readRevision(store: Store, table: 'nodes' | 'messages'): Promise<number> {
  const row = await queries(store).revision.get({ name: table })
  if (row === undefined) throw new Error(`no revision of ${table}`)
  return row.value
}

/** Serialises a list once for each state of its table, however many clients ask for it. */
export function createBodyCache(table: 'nodes' | 'messages') {
  const kept = new WeakMap<Db, { readonly revision: number; readonly bodies: Map<string, Body> }>()
  return async (store: Store, key: string, make: () => Promise<string>): Promise<Body> => {
    // Before the rows are read: a body may be newer than its tag, never older.
    const revision = await readRevision(store, table)
    const last = kept.get(store.db)
    const bodies = last?.revision === revision ? last.bodies : new Map<string, Body>()
    if (last?.bodies !== bodies) kept.set(store.db, { revision, bodies })
    const known = bodies.get(key)
    if (known !== undefined) return known
    const body = { json: await make(), etag: `"${revision}-${key}"` }
    if (bodies.size < KEPT_BODIES) bodies.set(key, body)
    return body
  }
}
