import { and, eq, type SQL, sql } from 'drizzle-orm'
import { users } from '../../../db/schema.ts'

/** Whether the row of `users` in a query has a second factor. Recovery codes alone do not count. */
export const hasSecondFactor = sql<number>`(exists (select 1 from "totp_factors" where "totp_factors"."user_id" = "users"."id")
  or exists (select 1 from "passkeys" where "passkeys"."user_id" = "users"."id"))`

/** Whether this user has a second factor when the statement runs. */
export function hasFactor(userId: number): SQL {
  return sql`exists (select 1 from ${users} where ${and(eq(users.id, userId), hasSecondFactor)})`
}
