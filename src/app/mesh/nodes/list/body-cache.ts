import { ownedBy } from '../../../base/owned.ts'
import { eq, sql } from 'drizzle-orm'
import { revisions } from '../../../../db/schema.ts'
import { type Db, prepareOnce, rememberUnchanged, type Store } from '../../../../db/store.ts'

// The number of bodies kept for one state of a table, because clients poll the same few lists.
const KEPT_BODIES = 4

/** A new message changes no counter: its id does. */
export const revisionOf = sql<number>`${revisions.value} + iif(${revisions.name} = 'messages',
  max(0, coalesce((select max(id) from messages), 0)), 0)`

const queries = prepareOnce((db) => ({
  revision: db
    .select({ value: revisionOf })
    .from(revisions)
    .where(eq(revisions.name, sql.placeholder('name')))
    .prepare(),
}))

/** A number that changes with every change of the table. Costs no query while the database has not changed. */
export const readRevision: (store: Store, table: 'nodes' | 'messages') => number | Promise<number> = rememberUnchanged(
  2,
  async (store, table) => {
    const row = await queries(store).revision.get({ name: table })
    if (row === undefined) throw new Error(`no revision of ${table}`)
    return row.value
  },
)

/**
 * Builds one body for each state of a table, even if many clients ask for it. `make` may return a body newer than the
 * revision under which it is stored, never an older one. `places`: the number of bodies kept.
 */
export function keepBodies<T>(places = KEPT_BODIES) {
  type Made = { revision: number; made: Map<string, T | Promise<T>> }
  const bodies = ownedBy((_db: Db): Made => ({ revision: -1, made: new Map() }))
  return async (store: Store, revision: number, key: string, make: () => T | Promise<T>): Promise<T> => {
    const state = bodies(store.db)
    if (state.revision !== revision) Object.assign(state, { revision, made: new Map() })
    const { made } = state
    const known = made.get(key)
    if (known !== undefined) return known
    // Those who ask meanwhile wait for the same body; a request of a worker must not wait for what another one reads.
    const fresh = store.batch === undefined ? make() : await make()
    if (made.size >= places) return fresh
    made.set(key, fresh)
    if (fresh instanceof Promise) fresh.catch(() => made.delete(key))
    return fresh
  }
}
