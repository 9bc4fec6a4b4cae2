import { and, eq, isNotNull, type Placeholder, or, sql, type SQL } from 'drizzle-orm'
import { alertDestinations, sessions, users } from '../../db/schema.ts'
import { prepareOnce } from '../../db/store.ts'
import type { Ctx } from '../base/context.ts'

/** `session`: when the session of the viewer began, in ms. */
function isToReview(owner: SQL | Placeholder, session: SQL | Placeholder): SQL | undefined {
  const { ownerId, heldAt, newsAt, newsSession } = alertDestinations
  return and(eq(ownerId, owner), or(isNotNull(heldAt), and(isNotNull(newsAt), sql`${newsSession} is not ${session}`)))
}

/** The number that `countToReview` returns, in a select of users and their sessions. */
export const destinationsToReview = sql<number>`(select count(*) from ${alertDestinations}
  where ${isToReview(sql`${users.id}`, sql`${sessions.createdAt}`)})`

const queries = prepareOnce((db) => ({
  count: db
    .select({ n: sql<number>`count(*)` })
    .from(alertDestinations)
    .where(isToReview(sql.placeholder('owner'), sql.placeholder('session')))
    .prepare(),
}))

/**
 * The number of alert destinations that the viewer has to review: those that are held, and those that are new or have a
 * new address. The session that created one need not review it. Tokens review none.
 */
export async function countToReview({ store, viewer, toReview }: Ctx): Promise<number> {
  if (viewer?.credential.kind !== 'session') return 0
  if (toReview !== undefined) return toReview
  const { createdAt: session } = viewer.credential.session
  return (await queries(store).count.get({ owner: viewer.user.id, session }))?.n ?? 0
}
