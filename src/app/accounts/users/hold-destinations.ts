import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { alertDestinations } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { HeldFor } from '../../../shared/alerts/destination-kinds.ts'
import { type Actor, audit } from '../../audit/audit.ts'

/**
 * Statements that hold all destinations of a user until the user has reviewed them, because an intruder in the account
 * may have created them. Part of the atomic step that secures the account. `onlyIf`: a condition under which that
 * happened.
 */
export function holdDestinations(
  ctx: Parameters<typeof audit>[0],
  { id, username }: { readonly id: number | SQL; readonly username: string },
  why: HeldFor,
  { onlyIf, ...options }: { readonly actor?: Actor; readonly onlyIf?: SQL | undefined } = {},
): Statement[] {
  const open = and(eq(alertDestinations.ownerId, id), isNull(alertDestinations.heldAt), onlyIf)
  const destinations = sql`(select count(*) from ${alertDestinations} where ${open})`
  return [
    audit(
      ctx,
      'alert_destinations_held',
      { userId: id, username, for: why, destinations },
      { ...options, onlyIf: sql`exists (select 1 from ${alertDestinations} where ${open})` },
    ),
    ctx.store.db
      .update(alertDestinations)
      .set({ heldAt: sql`${ctx.now()}`, heldFor: why })
      .where(open),
  ]
}
