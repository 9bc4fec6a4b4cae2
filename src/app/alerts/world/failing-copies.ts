import { asc, sql } from 'drizzle-orm'
import { copyPlaces } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import type { FailingCopy } from './world.ts'

const queries = prepareOnce((db) => ({
  failing: db
    .select({ id: copyPlaces.id, name: copyPlaces.name, since: sql<number>`failing_since` })
    .from(copyPlaces)
    .where(sql`enabled and held_at is null and failing_since is not null`)
    .orderBy(asc(copyPlaces.id))
    .prepare(),
}))

/** Places to which the latest backup could not be copied. */
export async function readFailingCopies(store: Store): Promise<FailingCopy[]> {
  const places = await queries(store).failing.all()
  return places.map(({ id, name, since }) => ({
    subject: `copy:${id}`,
    key: `copy:${id}:${since}`,
    nodeNum: null,
    channel: null,
    since,
    forMs: 0,
    isKnown: true,
    fact: { event: 'backup_failed', place: name },
  }))
}
