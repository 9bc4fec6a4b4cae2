import { and, eq, exists, type SQL, sql } from 'drizzle-orm'
import { users } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'

/** The state of a user when a check began. */
export type CheckedUser = { readonly userId: number; readonly epoch: number }

/** True while the user is active and nothing has ended their sessions since. */
export function isUnchanged({ db }: Store, { userId, epoch }: CheckedUser): SQL {
  const same = and(eq(users.id, userId), eq(users.isActive, true), eq(users.sessionEpoch, epoch))
  return exists(
    db
      .select({ one: sql`1` })
      .from(users)
      .where(same),
  )
}
