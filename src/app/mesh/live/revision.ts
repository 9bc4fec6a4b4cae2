import { sql } from 'drizzle-orm'
import { revisionOf } from '../nodes/list/body-cache.ts'
import { revisions } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'

const queries = prepareOnce((db) => ({
  sum: db
    .select({ value: sql<number>`sum(${revisionOf})` })
    .from(revisions)
    .where(sql`${revisions.name} in ('nodes', 'messages')`)
    .prepare(),
}))

/** A number that changes with the nodes and messages. */
export async function readRevision(store: Store): Promise<number> {
  return (await queries(store).sum.get())?.value ?? 0
}
