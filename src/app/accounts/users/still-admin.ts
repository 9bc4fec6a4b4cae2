import { and, eq, sql } from 'drizzle-orm'
import { users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { Ctx } from '../../base/context.ts'

/**
 * For the end of an atomic step: rolls it back if the administrator behind the request was deactivated or demoted or
 * got a new password since the request began, for example while a password was hashed. The step then throws
 * `unauthenticated` or `admin_required`. Does nothing without a viewer, as for commands on the command line.
 */
export function stillAdmin({ viewer, store }: Pick<Ctx, 'viewer' | 'store'>): Statement[] {
  if (viewer?.credential.kind !== 'session') return []
  const { epoch } = viewer.credential.session
  // Only triggers can raise an error, so an invalid JSON path is used: it appears in SQLite's message.
  const path = sql`case when ${users.isActive} = 0 or ${users.sessionEpoch} <> ${epoch} then 'viewer_ended'
    when ${users.isAdmin} = 0 then 'viewer_demoted' else '$' end`
  return [
    store.db
      .update(users)
      .set({ sessionEpoch: sql`${users.sessionEpoch}` })
      .where(and(eq(users.id, viewer.user.id), sql`json_extract('{}', ${path}) is null`)),
  ]
}
