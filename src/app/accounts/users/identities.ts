import { and, eq, type SQL, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { identities, users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import type { Ports } from '../../base/context.ts'

/** Accounts at providers that may sign one user in. */
export const MAX_IDENTITIES = 8

type Named = { readonly issuer: string; readonly subject: string }

/** A condition on `identities`. */
export function isIdentity({ issuer, subject }: Named): SQL | undefined {
  return and(eq(identities.issuer, issuer), eq(identities.subject, subject))
}

/** The id of the user of an identity, when the statement runs. */
export function ownerOf(identity: Named): SQL {
  return sql`(select ${identities.userId} from ${identities} where ${isIdentity(identity)})`
}

/** The statement that gives an identity to the one user who matches `whom`, a condition on `users`, when it runs. */
export function addIdentity(store: Store, whom: SQL | undefined, { issuer, subject }: Named, at: number): Statement {
  const identity = { userId: sql`${users.id}`, issuer, subject, createdAt: at }
  return insertSelect(store.db, identities, identity, sql`from ${users} where ${whom}`)
}

/** How many identities the row of `users` in a condition has. */
export const countIdentities = sql<number>`(select count(*) from "identities"
  where "identities"."user_id" = "users"."id")`

/** Whether the row of `users` in a condition has an identity at an issuer. */
export function hasIdentityAt(issuer: string): SQL {
  return sql`exists (select 1 from "identities" where "identities"."user_id" = "users"."id"
    and "identities"."issuer" = ${issuer})`
}

/** For a select on `users`: the subject at each issuer, as a JSON object. */
export const subjectsJson = sql<string>`(select json_group_object("issuer", "subject") from "identities"
  where "identities"."user_id" = "users"."id")`

/** For a select on `users`: the subject at the provider whose groups rule, otherwise at the one linked first. */
export const firstSubject = sql<string | null>`(select "subject" from "identities"
  where "identities"."user_id" = "users"."id"
  order by "identities"."issuer" is not "users"."oidc_issuer", "identities"."id" limit 1)`

/** For a select on `users`: the identities in the order in which they were linked, as a JSON array. */
export const identitiesJson = sql<string>`(select json_group_array(
    json_object('issuer', "issuer", 'subject', "subject", 'linkedAt', "created_at"))
  from (select "issuer", "subject", "created_at" from "identities"
    where "identities"."user_id" = "users"."id" order by "identities"."id"))`

/** The subject of a user at an issuer; null: the user is not linked there. */
export async function subjectAt({ db }: Store, userId: number, issuer: string): Promise<string | null> {
  const at = and(eq(identities.userId, userId), eq(identities.issuer, issuer))
  return (await db.select({ subject: identities.subject }).from(identities).where(at).get())?.subject ?? null
}

/** The name of an issuer in the configuration; null: it is not configured. */
export function providerIdOf({ providers }: Pick<Ports, 'providers'>, issuer: string | null): string | null {
  return providers.find((provider) => provider.issuer === issuer)?.settings.id ?? null
}
