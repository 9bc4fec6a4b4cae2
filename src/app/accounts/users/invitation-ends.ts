import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { invitations } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import type { InvitationEnd } from '../../../shared/access/invitation-ends.ts'
import { type Actor, audit, type AuditContext } from '../../audit/audit.ts'

type Whom = { readonly id: number; readonly username: string }

/**
 * A condition on `invitations`: its maker may still invite. Invitations from the command line have no maker and stay
 * valid.
 */
export const mayMakerInvite = sql`("invitations"."created_by" is null or exists (select 1 from "users" as "maker"
  where "maker"."id" = "invitations"."created_by" and "maker"."is_admin" = 1 and "maker"."is_active" = 1))`

/**
 * Statements that end the invitations made by a user, for the atomic step in which the right to invite ends. Put them
 * before the change if `onlyIf` depends on it. They stay ended.
 */
export function endInvitationsBy(
  ctx: AuditContext,
  maker: Whom,
  why: 'maker_demoted' | 'maker_deactivated',
  options: { readonly onlyIf?: SQL | undefined; readonly actor?: Actor } = {},
): Statement[] {
  const details = { makerId: maker.id, maker: maker.username }
  return end(ctx, { which: eq(invitations.createdBy, maker.id), details, why, ...options })
}

/** Statements that end the invitation to an account. */
export function endInvitationTo(ctx: AuditContext, user: Whom, why: 'withdrawn' | 'user_deactivated'): Statement[] {
  const details = { userId: user.id, username: user.username }
  return end(ctx, { which: eq(invitations.userId, user.id), details, why })
}

type Ending = {
  readonly which: SQL
  readonly details: Readonly<Record<string, unknown>>
  readonly why: InvitationEnd
  readonly onlyIf?: SQL | undefined
  readonly actor?: Actor
}

function end(ctx: AuditContext, { which, details, why, onlyIf, actor }: Ending): Statement[] {
  const open = and(which, isNull(invitations.endedAt), onlyIf)
  const userIds = sql`json((select json_group_array(${invitations.userId}) from ${invitations} where ${open}))`
  return [
    audit(
      ctx,
      'invitation_withdrawn',
      { ...details, why, userIds },
      { ...(actor && { actor }), onlyIf: sql`exists (select 1 from ${invitations} where ${open})` },
    ),
    ctx.store.db.update(invitations).set({ endedAt: ctx.now(), endedFor: why }).where(open),
  ]
}
