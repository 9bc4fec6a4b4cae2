import { and, eq, inArray, isNotNull, isNull, ne, or, type SQL, sql } from 'drizzle-orm'
import { alias, type AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import { identities, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { proxyIssuer } from '../proxy-issuer.ts'
import type { Config } from '../../config/config.ts'
import type { Ports } from '../../base/context.ts'

// Conditions for who can sign in with the current configuration, on `users` or an alias of it.

type Table = Readonly<
  Record<'id' | 'authProvider' | 'passwordHash' | 'isActive' | 'isAdmin' | 'lastLoginAt' | 'createdBy', AnySQLiteColumn>
>

const NEVER = sql`false`

/** Can sign in with a password or passkey of this service. */
export function hasLocalWay({ DISABLE_LOCAL_AUTH }: Config, table: Table = users): SQL {
  if (DISABLE_LOCAL_AUTH) return NEVER
  return and(eq(table.authProvider, 'local'), isNotNull(table.passwordHash)) ?? NEVER
}

/** At a configured provider, or by the proxy; not at the issuer `besides` if one is given. */
export function hasProviderWay(config: Config, table: Table = users, besides: string | null = null): SQL {
  const proxy = proxyIssuer(config)
  const all = [...config.OIDC_PROVIDERS.map(({ issuer }) => issuer), ...(proxy === null ? [] : [proxy])]
  const issuers = all.filter((issuer) => issuer !== besides)
  if (issuers.length === 0) return NEVER
  const owned = and(eq(identities.userId, table.id), inArray(identities.issuer, issuers))
  return sql`exists (select 1 from ${identities} where ${owned})`
}

/** In another way than at this issuer. */
export function hasWayBesides(config: Config, issuer: string): SQL {
  return or(hasLocalWay(config), hasProviderWay(config, users, issuer)) ?? NEVER
}

/**
 * An administrator who counts as one: active, able to sign in, and not a prepared account that nobody has used. The
 * first administrator counts from the start.
 */
export function isRealAdmin(config: Config, table: Table = users): SQL {
  const hasWay = or(hasLocalWay(config, table), hasProviderWay(config, table))
  const hasCome = or(isNotNull(table.lastLoginAt), and(eq(table.authProvider, 'local'), isNull(table.createdBy)))
  return and(eq(table.isAdmin, true), eq(table.isActive, true), hasWay, hasCome) ?? NEVER
}

const others = alias(users, 'others')

/**
 * Whether there is such an administrator, besides the user `besides` if one is given.
 * Decision: docs/decisions/last-administrator.md
 */
export function hasRealAdmin(config: Config, besides: number | null = null): SQL {
  const other = and(isRealAdmin(config, others), besides === null ? undefined : ne(others.id, besides))
  return sql`exists (select 1 from ${users} as "others" where ${other})`
}

/**
 * For the beginning of an atomic step that takes the role, the account or the way in of this user: rolls it back if no
 * other administrator could sign in afterwards, unless the user still can because `unless`, a condition on `users`,
 * holds. The step then throws `last_admin`.
 */
export function keepRealAdmin(
  { store, config }: Pick<Ports, 'store' | 'config'>,
  id: number,
  unless: SQL = NEVER,
): Statement {
  // Only triggers can raise an error, so an invalid JSON path is used: it appears in SQLite's message.
  const path = sql`case when ${or(unless, hasRealAdmin(config, id))} then '$' else 'last_admin' end`
  return store.db
    .update(users)
    .set({ isAdmin: sql`${users.isAdmin}` })
    .where(and(eq(users.id, id), isRealAdmin(config), sql`json_extract('{}', ${path}) is null`))
}
