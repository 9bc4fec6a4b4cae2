import { sql } from 'drizzle-orm'
import { backupCopies, copyPlaces } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import type { Family } from '../metrics/exposition.ts'

const queries = prepareOnce((db) => ({
  places: db
    .select({
      place: copyPlaces.name,
      failures: copyPlaces.failures,
      count: sql<number>`(select count(*) from ${backupCopies} where place_id = copy_places.id and state = 'made')`,
      madeAt: sql<
        number | null
      >`(select max(made_at) from ${backupCopies} where place_id = copy_places.id and state = 'made')`,
    })
    .from(copyPlaces)
    .where(sql`enabled and held_at is null`)
    .prepare(),
}))

/** The copies for Prometheus, by place. */
export async function copyFamilies(store: Store): Promise<Family[]> {
  const places = await queries(store).places.all()
  return [
    {
      name: 'mesh_backup_copies',
      type: 'gauge',
      help: 'Complete and checked copies of backups at a place.',
      samples: places.map(({ place, count }) => ({ labels: { place }, value: count })),
    },
    {
      name: 'mesh_backup_copy_failures',
      type: 'gauge',
      help: 'Attempts to copy a backup to a place that failed since the last success.',
      samples: places.map(({ place, failures }) => ({ labels: { place }, value: failures })),
    },
    {
      name: 'mesh_backup_copy_last_success_timestamp_seconds',
      type: 'gauge',
      help: 'When the latest copy at a place was complete and checked.',
      samples: places.flatMap(({ place, madeAt }) =>
        madeAt === null ? [] : [{ labels: { place }, value: madeAt / 1000 }],
      ),
    },
  ]
}
