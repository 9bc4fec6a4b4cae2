import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import { apiTokens, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit, SYSTEM } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'

type Owner = { readonly id: number; readonly username: string }

const held = ({ id }: Owner) => and(eq(apiTokens.userId, id), isNotNull(apiTokens.heldAt))
const free = ({ id }: Owner) => and(eq(apiTokens.userId, id), isNull(apiTokens.heldAt))
const countOf = (which: ReturnType<typeof held>) => sql`(select count(*) from ${apiTokens} where ${which})`

/**
 * Refuses all API tokens of a user until the next sign-in. `why`: details for the audit entry. Without tokens there is
 * no entry.
 */
export function holdTokens(ctx: Ctx, owner: Owner, why: Readonly<Record<string, string>>): Statement[] {
  const { id: userId, username } = owner
  const which = free(owner)
  return [
    audit(
      ctx,
      'tokens_held',
      { userId, username, ...why, tokens: countOf(which) },
      { actor: SYSTEM, onlyIf: sql`exists (select 1 from ${apiTokens} where ${which})` },
    ),
    ctx.store.db.update(apiTokens).set({ heldAt: ctx.now() }).where(which),
  ]
}

/** Releases the tokens of a user, if the sign-in at `signedInAt` (ms) was recorded earlier in the same step. */
export function releaseTokens(ctx: Ctx, owner: Owner, signedInAt: number): [Statement, Statement] {
  const isSignedIn = sql`exists (select 1 from ${users} where ${and(eq(users.id, owner.id), eq(users.lastLoginAt, signedInAt))})`
  const which = and(held(owner), isSignedIn)
  return [
    audit(
      ctx,
      'tokens_released',
      {},
      { actor: owner, onlyIf: sql`exists (select 1 from ${apiTokens} where ${which})` },
    ),
    ctx.store.db.update(apiTokens).set({ heldAt: null }).where(which),
  ]
}
