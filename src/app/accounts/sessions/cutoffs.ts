import { type SQL, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { providerCutoffs } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { Ctx } from '../../base/context.ts'
import type { StoredSession } from './store.ts'

/** Ends the sessions of a user that began at an issuer, even if they are not stored in the database. */
export function cutOff({ store, now }: Ctx, userId: number, issuer: string, onlyIf: SQL = sql`true`): Statement {
  const endedAt = now()
  return insertSelect(store.db, providerCutoffs, { userId, issuer, endedAt }, sql`where ${onlyIf}`).onConflictDoUpdate({
    target: [providerCutoffs.userId, providerCutoffs.issuer],
    set: { endedAt },
  })
}

/** A user's cutoffs as JSON, issuer to time, for a select on `users`. */
export const cutoffsJson = sql<string>`(select json_group_object("issuer", "ended_at") from "provider_cutoffs"
  where "provider_cutoffs"."user_id" = "users"."id")`

/** Whether a session is one of those that `cutoffs` end. */
export function isCutOff(cutoffs: Readonly<Record<string, number>>, { oidcIssuer, createdAt }: StoredSession): boolean {
  return oidcIssuer !== null && Object.hasOwn(cutoffs, oidcIssuer) && createdAt < (cutoffs[oidcIssuer] ?? 0)
}
