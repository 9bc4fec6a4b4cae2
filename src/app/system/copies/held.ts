import { isNotNull } from 'drizzle-orm'
import { copyPlaces } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'

/** Sends to all places that a restore brought back, from the next start on. */
export function releasePlaces({ db }: Store): Statement {
  return db.update(copyPlaces).set({ heldAt: null, nextTryAt: 0 }).where(isNotNull(copyPlaces.heldAt))
}
