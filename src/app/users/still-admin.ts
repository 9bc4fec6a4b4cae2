import { and, eq, sql } from 'drizzle-orm'
import { users } from '../../db/schema.ts'
import type { Statement } from '../../db/store.ts'
import type { Ctx } from '../context.ts'

/**
 * For the end of an atomic step: takes all of it back when the administrator who asks for it was deactivated, demoted or
 * got another password since the request began, while a password was hashed, say. The step then throws
 * `unauthenticated` or `admin_required`. Nothing without a viewer: whoever is at the console may do all.
 */
export function stillAdmin({ viewer, store }: Pick<Ctx, 'viewer' | 'store'>): Statement[] {
  if (viewer?.credential.kind !== 'session') return []
  const { epoch } = viewer.credential.session
  // No statement but one of a trigger can raise an error of its own: a path that is none ends up in SQLite's message.
  const path = sql`case when ${users.isActive} = 0 or ${users.sessionEpoch} <> ${epoch} then 'viewer_ended'
    when ${users.isAdmin} = 0 then 'viewer_demoted' else '$' end`
  return [
    store.db
      .update(users)
      .set({ sessionEpoch: sql`${users.sessionEpoch}` })
      .where(and(eq(users.id, viewer.user.id), sql`json_extract('{}', ${path}) is null`)),
  ]
}
