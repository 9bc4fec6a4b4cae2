import { eq, sql } from 'drizzle-orm'
import { type SWEEP_NAMES, sweeps } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'

type Name = (typeof SWEEP_NAMES)[number]

/** A pass through a table: what is older than `cutoff` (milliseconds) goes. */
export type Pass = {
  readonly cutoff: number
  /** The key after which it continues, as stored by `leaveAt`; null: from the start. */
  readonly place: unknown
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  one: db
    .select()
    .from(sweeps)
    .where(eq(sweeps.name, value('name')))
    .prepare(),
}))

/**
 * The pass under way, or a new one up to `cutoff`. Null: the last one was finished for a cutoff less than `restMs`
 * earlier, so that hardly anything would be found.
 */
export async function beginPass(store: Store, name: Name, cutoff: number, restMs: number): Promise<Pass | null> {
  const known = await queries(store).one.get({ name })
  if (known === undefined) {
    await store.db
      .insert(sweeps)
      .values({ name, cutoff, doneBefore: cutoff - 1 })
      .onConflictDoNothing()
      .run()
    return { cutoff, place: null }
  }
  if (known.place !== null) return { cutoff: known.cutoff, place: JSON.parse(known.place) }
  // After a longer retention was set, or the clock was put back, the cutoff is earlier.
  if (known.cutoff <= cutoff && cutoff - known.cutoff < restMs && known.doneBefore === known.cutoff) return null
  await store.db.update(sweeps).set({ cutoff }).where(eq(sweeps.name, name)).run()
  return { cutoff, place: null }
}

/** Where the last run stopped, for work without a cutoff; null: it came to the end. */
export async function readPlace(store: Store, name: Name): Promise<unknown> {
  const place = (await queries(store).one.get({ name }))?.place ?? null
  return place === null ? null : JSON.parse(place)
}

/** Stores how far the pass has come; the next run continues there. */
export async function leaveAt(store: Store, name: Name, place: unknown): Promise<void> {
  const row = { name, place: JSON.stringify(place), cutoff: 0, doneBefore: 0 }
  await store.db
    .insert(sweeps)
    .values(row)
    .onConflictDoUpdate({ target: sweeps.name, set: { place: row.place } })
    .run()
}

/** The pass reached the end. */
export async function endPass(store: Store, name: Name): Promise<void> {
  await store.db
    .update(sweeps)
    .set({ place: null, doneBefore: sql`${sweeps.cutoff}` })
    .where(eq(sweeps.name, name))
    .run()
}
