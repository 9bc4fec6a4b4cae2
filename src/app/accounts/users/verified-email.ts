import { and, eq, gt, isNotNull, isNull, or, sql, type SQL } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { invitations, mailLinks, users, verifiedEmails } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { DAY_MS } from '../../../shared/time.ts'

/** For this long, letters about security also go to the previous address, because an intruder may have changed it. */
const PREVIOUS_MS = DAY_MS

/** Whether the row of `users` in a query is a local user who proved that the current address is theirs. */
export const isEmailVerified = sql<number>`("users"."auth_provider" = 'local' and exists (select 1 from "verified_emails"
  where "verified_emails"."user_id" = "users"."id" and "verified_emails"."ended_at" is null
  and "verified_emails"."email" = "users"."email"))`

/**
 * Statements for an atomic step that changes the address of a user, after the change: the previous address no longer
 * counts as verified, and links sent to it become invalid.
 */
export function forgetPreviousEmail(
  { db }: Pick<Store, 'db'>,
  userId: number,
  now: number,
): [Statement, ...Statement[]] {
  const present = sql`(select ${users.email} from ${users} where ${eq(users.id, userId)})`
  return [
    db
      .update(verifiedEmails)
      .set({ endedAt: now })
      .where(and(eq(verifiedEmails.userId, userId), isNull(verifiedEmails.endedAt), sql`email is not ${present}`)),
    db.delete(mailLinks).where(and(eq(mailLinks.userId, userId), sql`email is not ${present}`)),
    db
      .delete(invitations)
      .where(and(eq(invitations.userId, userId), isNotNull(invitations.email), sql`email is not ${present}`)),
  ]
}

/**
 * Statements for an atomic step by which an administrator takes an account back: whoever had it may have confirmed an
 * address of their own, and could ask there for a new password. No address counts as verified, and no link works.
 */
export function endVerifiedEmail({ db }: Pick<Store, 'db'>, userId: number | SQL, now: number | SQL): Statement[] {
  return [
    db
      .update(verifiedEmails)
      .set({ endedAt: sql`${now}` })
      .where(and(eq(verifiedEmails.userId, userId), isNull(verifiedEmails.endedAt))),
    db.delete(mailLinks).where(eq(mailLinks.userId, userId)),
  ]
}

/** The statement that marks the current address of a user as verified, if `onlyIf` is true. */
export function verifyEmail(
  { db }: Pick<Store, 'db'>,
  { userId, email, now }: { readonly userId: number; readonly email: string; readonly now: number },
  onlyIf: SQL | undefined,
): Statement {
  const isTheirs = and(eq(users.id, userId), eq(users.email, email), eq(users.authProvider, 'local'))
  const known = and(eq(verifiedEmails.userId, userId), isNull(verifiedEmails.endedAt))
  return insertSelect(
    db,
    verifiedEmails,
    { userId, email, verifiedAt: now },
    sql`where ${onlyIf}
      and exists (select 1 from ${users} where ${isTheirs} and ${users.isActive} = 1)
      and not exists (select 1 from ${verifiedEmails} where ${known})`,
  )
}

/**
 * The addresses for letters about the security of an account: its verified address, and one that was replaced recently.
 */
export async function addressesToTell({ db }: Store, userId: number, now: number): Promise<string[]> {
  const recent = and(gt(verifiedEmails.endedAt, now - PREVIOUS_MS))
  const present = and(isNull(verifiedEmails.endedAt), eq(verifiedEmails.email, users.email))
  const rows = await db
    .selectDistinct({ email: verifiedEmails.email })
    .from(verifiedEmails)
    .innerJoin(users, eq(users.id, verifiedEmails.userId))
    .where(and(eq(verifiedEmails.userId, userId), eq(users.authProvider, 'local'), or(present, recent)))
    .limit(4)
    .all()
  return rows.map(({ email }) => email)
}
