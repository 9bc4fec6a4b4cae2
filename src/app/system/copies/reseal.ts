import { and, asc, eq, gt } from 'drizzle-orm'
import { copyPlaces } from '../../../db/schema.ts'
import { type Also, type Kind, SLICE } from '../reseal.ts'
import { placeLabel } from './label.ts'

const COPY_PLACES: Kind<string> = {
  first: '',
  read: async (db, after) =>
    db
      .select({ key: copyPlaces.name, sealed: copyPlaces.sealed })
      .from(copyPlaces)
      .where(gt(copyPlaces.name, after))
      .orderBy(asc(copyPlaces.name))
      .limit(SLICE)
      .all(),
  label: ({ key }) => placeLabel(key),
  write: async (db, key, { before, after }) =>
    db
      .update(copyPlaces)
      .set({ sealed: after })
      .where(and(eq(copyPlaces.name, key), eq(copyPlaces.sealed, before)))
      .run(),
}

/** Seals the credentials of places for copies anew. */
export const resealPlaces: Also = (reseal) => reseal(COPY_PLACES)
