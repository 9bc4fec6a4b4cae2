import { and, eq, gt, lte, sql, type SQL } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { mailLinks, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import type { Ports } from '../../base/context.ts'
import { sha256Hex } from '../../base/crypto.ts'
import { hashToken } from '../sessions/session-token.ts'
import { isQueued, type NewLink } from './letters.ts'

type Purpose = (typeof mailLinks.$inferSelect)['purpose']

/** How long a link is valid. */
export const LINK_MS: Readonly<Record<Purpose, number>> = { reset: HOUR_MS, verify: DAY_MS }

/**
 * The account state that a password link depends on, from the row of `users` in a query. Contains secrets: only its
 * hash is stored.
 */
const accountState = sql<string>`json_array("users"."password_hash", "users"."session_epoch", "users"."email",
  "users"."is_active", "users"."auth_provider",
  (select "seed" from "totp_factors" where "totp_factors"."user_id" = "users"."id"),
  (select count(*) || ' ' || coalesce(sum("id"), 0) from "passkeys" where "passkeys"."user_id" = "users"."id"))`

/** Confirming an address depends on the address alone. */
const stateFor: Readonly<Record<Purpose, SQL<string>>> = {
  reset: accountState,
  verify: sql<string>`json_array("users"."email", "users"."is_active", "users"."auth_provider")`,
}

/** The account state that a new link is bound to; null: no such user. */
export async function readState(
  { store }: Pick<Ports, 'store'>,
  userId: number,
  purpose: Purpose,
): Promise<string | null> {
  const row = await store.db.select({ state: stateFor[purpose] }).from(users).where(eq(users.id, userId)).get()
  return row?.state ?? null
}

/** The statement that stores a link whose letter was queued earlier in the same step. */
export function insertLink(
  { store, now }: Pick<Ports, 'store' | 'now'>,
  link: NewLink & {
    readonly userId: number
    readonly purpose: Purpose
    readonly email: string
    readonly state: string
  },
): Statement {
  const { userId, purpose, tokenHash, email, state, uid } = link
  const at = now()
  const expiresAt = at + LINK_MS[purpose]
  return insertSelect(
    store.db,
    mailLinks,
    { userId, purpose, tokenHash, email, state: sha256Hex(state), createdAt: at, expiresAt },
    sql`where ${isQueued(uid)}`,
  )
}

/** A valid link, its user, and the state of the account. */
export type OpenLink = {
  readonly userId: number
  readonly username: string
  readonly email: string
  readonly purpose: Purpose
  readonly expiresAt: number
  /** SQL condition: neither link nor account has changed. */
  readonly isOpen: SQL
  /** The part of it about the row of `users`. */
  readonly isUnchanged: SQL
}

/** The link of a token; null: expired, used, unknown, or the account has changed since. Changes nothing. */
export async function findLink(
  { store, now }: Pick<Ports, 'store' | 'now'>,
  token: string,
  purposes: readonly Purpose[],
): Promise<OpenLink | null> {
  const at = now()
  const { tokenHash, expiresAt, purpose, createdAt } = mailLinks
  // A link that is valid for longer than the maximum was created while the clock was ahead.
  const open = and(eq(tokenHash, hashToken(token)), gt(expiresAt, at), lte(createdAt, at + CLOCKS_DIFFER_MS))
  const row = await store.db
    .select({
      userId: users.id,
      username: users.username,
      email: mailLinks.email,
      purpose,
      expiresAt,
      stored: mailLinks.state,
      reset: stateFor.reset,
      verify: stateFor.verify,
      isActive: users.isActive,
    })
    .from(mailLinks)
    .innerJoin(users, eq(users.id, mailLinks.userId))
    .where(open)
    .get()
  if (row === undefined || !row.isActive || !purposes.includes(row.purpose)) return null
  const state = row[row.purpose]
  if (sha256Hex(state) !== row.stored) return null
  const isUnchanged = sql`${stateFor[row.purpose]} = ${state}`
  const { userId, username, email } = row
  const isOpen = sql`exists (select 1 from ${users} where ${and(eq(users.id, userId), isUnchanged)})
    and exists (select 1 from ${mailLinks} where ${open})`
  return { userId, username, email, purpose: row.purpose, expiresAt: row.expiresAt, isOpen, isUnchanged }
}

/** By how much the clocks of two instances may differ. */
const CLOCKS_DIFFER_MS = 10 * 60_000

/** The statement that deletes all links of a user for a purpose. */
export function dropLinks({ store }: Pick<Ports, 'store'>, userId: number, purpose: Purpose, onlyIf: SQL): Statement {
  return store.db.delete(mailLinks).where(and(eq(mailLinks.userId, userId), eq(mailLinks.purpose, purpose), onlyIf))
}

/** The statement that deletes links that have expired or were created while the clock was ahead. */
export function sweepLinks({ store, now }: Pick<Ports, 'store' | 'now'>): Statement {
  return store.db.delete(mailLinks).where(sql`expires_at <= ${now()} or created_at > ${now() + CLOCKS_DIFFER_MS}`)
}
